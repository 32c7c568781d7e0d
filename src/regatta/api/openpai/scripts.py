"""From what an author wrote to the words that start bash, so that bash gets exactly that.

Nothing is done to a script's text. What has to happen before it (fetching code, filling in secrets)
stands in a script of ours, which takes the author's as an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: How OpenPAI starts the two: v1 evaluates one command, v2 stops at the first that fails. Behind
#: `--`, or a script that begins with a dash would be read as options.
PLAIN = "bash -c --"
STRICT = "bash -eu -o pipefail -c --"
#: Where a replica works is known there alone.
_WORK_DIR = "export PAI_WORK_DIR=$PWD"

LARGEST_CODE = 200_000_000
#: Marks a folder as a copy of ours, which may be written over.
COPIED = ".regatta-copied"

#: $1: the author's script. $2: the folder of code, or nothing. $3: the one for output, or nothing.
#: $4: one around that which has to be this account's own, or nothing: whose it is could read and
#: exchange what is written. A file system that keeps no owners gives nobody anything of their own;
#: it is asked in the folder above, where nobody else can put another in the place of what we make.
#: Replicas may share their working folder, so each copies beside it and moves file by file: no
#: program ever sees half of a file.
FETCH_CODE = f"""\
refuse() {{ echo "regatta: $*" >&2; [ -z "$fresh" ] || rm -rf -- "$fresh"; exit 1; }}
merge() {{
  mkdir -p -- "$2" || return
  local item
  for item in "$1"/*; do
    if [ -d "$item" ] && ! [ -L "$item" ]; then
      merge "$item" "$2/${{item##*/}}" || return
    else
      mv -f -- "$item" "$2/" || return
    fi
  done
}}
own() {{
  [ -d "$1" ] && ! [ -L "$1" ] || return
  [ -O "$1" ] && return
  local made
  made=$(mktemp -d "${{1%/*}}/.regatta-XXXXXX") || return
  if [ -O "$made" ]; then rmdir -- "$made"; return 1; fi
  rmdir -- "$made"
}}
shopt -s dotglob nullglob
fresh=
if [ -n "$2" ]; then
  name=${{2##*/}}
  [ -e "$2" ] || refuse "codeDir: there is no $2 here. Put the code there, or mount it."
  size=0
  while read -r bytes; do size=$((size + bytes)); done \\
    < <(find -H "$2" -type f -exec stat -c %s {{}} +)
  [ "$size" -le {LARGEST_CODE} ] ||
    refuse "codeDir: $2 has $size bytes, and at most {LARGEST_CODE} are copied." \\
      "Keep data out of it, and read that from where it is."
  if ! [ "$2" -ef "./$name" ]; then
    fresh=$(mktemp -d "./.$name.XXXXXX") ||
      refuse "codeDir: the working folder $PWD cannot be written to, so $2 is not copied there."
    cp -RH -- "$2" "$fresh/" || refuse "codeDir: $2 could not be copied into $PWD."
    if [ -d "$name" ] && ! [ -e "$name/{COPIED}" ] && ! diff -rq -- "$2" "$name" >/dev/null; then
      refuse "codeDir: $PWD has another folder $name, which would be written over." \\
        "Rename it, or run the job in an empty folder."
    fi
    [ ! -d "$fresh/$name" ] || : > "$fresh/$name/{COPIED}"
    if ! mv -- "$fresh/$name" . 2>/dev/null; then
      [ -d "$fresh/$name" ] && merge "$fresh/$name" "$PWD/$name" ||
        refuse "codeDir: $2 could not be copied over $PWD/$name, which is there already."
    fi
    rm -rf -- "$fresh"
  fi
fi
if [ -n "$4" ]; then
  mkdir -p -- "$4" || refuse "outputDir: the folder $4 cannot be made here."
  own "$4" || refuse "outputDir: $4 is not this account's own folder, so that others could read" \
    "and exchange what is written there. Ask whoever runs the server to remove it."
fi
if [ -n "$3" ]; then
  mkdir -p -- "$3" || refuse "outputDir: the folder $3 cannot be made here."
fi
{_WORK_DIR}
exec {PLAIN} "$1"
"""

#: $1: the author's script; then pairs of a text in it and the variable whose value belongs there.
#: The first of the texts is looked for again and again in what is left, so a value is never
#: searched itself; none lies across another, so each is looked for before the one that was found.
#: Quoted patterns are literal; `${x//a/b}` would give an & in b a meaning. All of it is one line,
#: because bash counts the author's lines from the one that `eval` stands on.
FILL_IN = " ".join(
    (
        f"{_WORK_DIR}; regatta_left=$1 regatta_text=; shift;",
        "while :; do",
        "regatta_head=$regatta_left regatta_mark= regatta_name=;",
        "for ((regatta_i = 1; regatta_i < $#; regatta_i += 2)); do",
        'regatta_try=${regatta_head%%"${!regatta_i}"*};',
        "if ((${#regatta_try} < ${#regatta_head})); then",
        "regatta_j=$((regatta_i + 1)) regatta_head=$regatta_try regatta_mark=${!regatta_i};",
        "regatta_name=${!regatta_j}; fi; done;",
        '[ -n "$regatta_mark" ] || break;',
        "regatta_text+=$regatta_head${!regatta_name};",
        "regatta_left=${regatta_left:$((${#regatta_head} + ${#regatta_mark}))}; done;",
        "regatta_text+=$regatta_left;",
        'while (($#)); do unset -v "$2"; shift 2; done;',
        "unset -v regatta_left regatta_head regatta_mark regatta_name regatta_try regatta_i;",
        "unset -v regatta_j BASH_EXECUTION_STRING;",
        'eval "unset -v regatta_text; $regatta_text"',
    )
)


def with_folders(script: str, code: str, output: str, own: str = "") -> list[str]:
    """`code` and `output` are folders of this file system; either may be empty. `own`: one around
    `output` that has to be the account's own."""
    if not code and not output:
        return ["bash", "-c", f'{_WORK_DIR}; exec {PLAIN} "$1"', "bash", script]
    return ["bash", "-c", FETCH_CODE, "bash", script, code, output, *([own] if own else [])]


def strict(script: str, fillings: Sequence[tuple[str, str]] = ()) -> list[str]:
    """`fillings`: a text of the script, and the variable that holds what belongs there."""
    if not fillings:
        return ["bash", "-c", f'{_WORK_DIR}; exec {STRICT} "$1"', "bash", script]
    start = STRICT.removesuffix(" --").split()
    return [*start, FILL_IN, "bash", script, *(word for pair in fillings for word in pair)]


def literal(text: str) -> str:
    """As Kubernetes must be given what is to stay as it is: `$$` stands for `$`."""
    return text.replace("$", "$$")


def joined(commands: Iterable[str]) -> str:
    return "\n".join(command.strip() for command in commands)
