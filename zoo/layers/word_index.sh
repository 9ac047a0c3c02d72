#!/bin/sh
# Words that come twice are counted once.
here=$(dirname "$0")

session() {
  echo "add the quick brown fox"
  echo "add the lazy dog"
  sleep 0.1
  echo "count"
  echo "quit"
}

answer=$(session | "$here/word_index_d")
if [ "$answer" != "6 words" ]; then
  echo "the index says \"$answer\"" >&2
  exit 1
fi
