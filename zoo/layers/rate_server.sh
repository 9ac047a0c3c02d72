#!/bin/sh
# Starts a rate server and asks it for a rate.
here=$(dirname "$0")
folder=$(mktemp -d)
door=$folder/door
mkfifo "$folder/output"

"$here/rate_server_d" serve "$door" >"$folder/output" &
server=$!
trap 'kill $server; wait $server 2>/dev/null; rm -r "$folder"' EXIT
read -r ready <"$folder/output"

rate=$("$here/rate_server_d" ask "$door" GBP)
if [ "$ready $rate" != "ready 0.85" ]; then
  echo "the server says \"$ready\", the rate is \"$rate\"" >&2
  exit 1
fi
