"""`regatta completion`: the script that a shell needs."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from regatta.cli.outcomes import Exit
from regatta.cli.settings import verb

VARIABLE = "_REGATTA_COMPLETE"


@verb("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> Exit:
    """Print the completion script of a shell; job names complete too.

    \b
    bash:  eval "$(regatta completion bash)"      in ~/.bashrc
    zsh:   eval "$(regatta completion zsh)"       in ~/.zshrc
    fish:  regatta completion fish > ~/.config/fish/completions/regatta.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    print(kind(context.find_root().command, {}, "regatta", VARIABLE).source())
    return Exit.OK
