#!/bin/sh
# Starts a quote server and asks it for a quote.
here=$(dirname "$0")
folder=$(mktemp -d)
door=$folder/door

"$here/quote_server_d" serve "$door" &
server=$!
trap 'kill $server; wait $server 2>/dev/null; rm -r "$folder"' EXIT

tries=0
while [ ! -S "$door" ] && [ $tries -lt 200 ]; do
  sleep 0.05
  tries=$((tries + 1))
done

quote=$("$here/quote_server_d" ask "$door" 1)
if [ "$quote" != "Festina lente." ]; then
  echo "the first quote is \"$quote\"" >&2
  exit 1
fi
