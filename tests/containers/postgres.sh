#!/usr/bin/env bash
# What PostgreSQL's own image does first: make the database of POSTGRES_DB, USER and PASSWORD in an empty volume, then serve it.
set -euo pipefail
data=/var/lib/postgresql/18/docker
if [ "$(id -u)" = 0 ]; then
    install --directory --owner postgres --group postgres --mode 0700 "$data"
    chown postgres /var/lib/postgresql
    exec setpriv --reuid postgres --regid postgres --init-groups bash "$0"
fi
if [ ! -s "$data/PG_VERSION" ]; then
    initdb --pgdata "$data" --username "$POSTGRES_USER" --pwfile <(printf '%s\n' "$POSTGRES_PASSWORD") --auth scram-sha-256 \
        --encoding UTF8 --locale-provider builtin --locale C.UTF-8
    echo "host all all all scram-sha-256" >> "$data/pg_hba.conf"
    postgres --single -D "$data" postgres <<< "CREATE DATABASE \"$POSTGRES_DB\""
fi
exec postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp
