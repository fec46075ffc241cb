# Start Postgres: its data is made on the first start, the operator's login is brought up to date on each.
set -eu
umask 077

# One server at a time on the volume: a pod that is deleted by force may run on beside the next one. Whatever holds the
# open file holds the lock, so it is given up when the server's last process is gone.
exec 9> "${PGDATA%/*}/lock"
flock 9

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  # Made aside and then put in place, so that a start that is killed leaves no half of it.
  rm -rf "$PGDATA.new"
  initdb --pgdata="$PGDATA.new" --username=postgres --encoding=UTF8 --no-locale --data-checksums \
    --auth-local=peer --auth-host=scram-sha-256
  # The superuser has no password, so that it can only come in by the socket within this container.
  echo "host all all all scram-sha-256" >> "$PGDATA.new/pg_hba.conf"
  sync
  mv "$PGDATA.new" "$PGDATA"
fi

# A killed server's: no other has the lock.
rm -f "$PGDATA/postmaster.pid"
pg_ctl start --wait --timeout=600 --silent --options="-c unix_socket_directories='$PGHOST' -c listen_addresses=''"
psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1 --set=password="$KILLPOINT_POSTGRES_PASSWORD" \
  --username=postgres --dbname=postgres <<'SQL'
SELECT 'CREATE ROLE killpoint' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'killpoint') \gexec
ALTER ROLE killpoint LOGIN CREATEDB CREATEROLE PASSWORD :'password';
REVOKE CONNECT ON DATABASE postgres, template1 FROM PUBLIC;
GRANT CONNECT ON DATABASE postgres TO killpoint;
SQL
pg_ctl stop --wait --mode=fast --silent
unset KILLPOINT_POSTGRES_PASSWORD
exec postgres -c unix_socket_directories="$PGHOST" -c listen_addresses='*' -c "max_connections=$KILLPOINT_POSTGRES_CONNECTIONS"
