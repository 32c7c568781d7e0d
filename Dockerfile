# The operator's image, or with PARTS=team-server that of a team's server. Any base of the Debian
# family will do, with or without Python.
#
#   docker build -t regatta/operator:0.1.0 .
#   docker build -t regatta/team-server:0.1.0 --build-arg PARTS=team-server .
ARG BASE=python:3.11-slim
FROM ${BASE} AS build

# Debian keeps venv apart from Python.
RUN if ! python3 -c 'import ensurepip' 2>/dev/null; then \
        apt-get update \
        && apt-get install -y --no-install-recommends python3-venv \
        && rm -rf /var/lib/apt/lists/*; \
    fi \
    && python3 -m venv /opt/regatta
ENV PATH=/opt/regatta/bin:$PATH

# First what changes seldom: exact versions, checked by their hashes.
ARG PARTS=operator
COPY requirements/${PARTS}.txt /src/requirements/parts.txt
RUN pip install --no-cache-dir --require-hashes -r /src/requirements/parts.txt

COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
RUN pip install --no-cache-dir --no-deps /src \
    && python -m compileall -q /opt/regatta \
    && pip uninstall --yes --quiet pip setuptools \
    && regatta operator --help > /dev/null

FROM ${BASE}
COPY --from=build /opt/regatta /opt/regatta
# State folders are named after the machine, and this one is the same in the next pod and release.
RUN rm -f /etc/machine-id && echo regatta-in-a-pod > /etc/machine-id
# Whoever runs another verb in it means the cluster: the engine of a machine is not in here.
ENV PATH=/opt/regatta/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    REGATTA_ENGINE=kubernetes
USER 65532:65532
ENTRYPOINT ["regatta", "operator"]
CMD ["--leader-elect"]
