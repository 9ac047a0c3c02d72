#pragma once

#include <libpq-fe.h>

namespace unflake {

#define UNFLAKE_LIBPQ_FUNCTIONS(USE) \
  USE(clear)                         \
  USE(cmdTuples)                     \
  USE(connectPoll)                   \
  USE(connectStartParams)            \
  USE(connectionNeedsPassword)       \
  USE(conninfoFree)                  \
  USE(conninfoParse)                 \
  USE(errorMessage)                  \
  USE(exec)                          \
  USE(execParams)                    \
  USE(finish)                        \
  USE(freemem)                       \
  USE(getisnull)                     \
  USE(getlength)                     \
  USE(getvalue)                      \
  USE(ntuples)                       \
  USE(parameterStatus)               \
  USE(resultErrorField)              \
  USE(resultStatus)                  \
  USE(serverVersion)                 \
  USE(setErrorVerbosity)             \
  USE(setNoticeProcessor)            \
  USE(socket)                        \
  USE(status)                        \
  USE(unescapeBytea)

// libpq, without the letters before each name. Linked, it and the twenty libraries behind it would
// make every command start 3 ms later, for the few that have a server to talk to.
struct LibPq {
#define UNFLAKE_DECLARE(name) decltype(&::PQ##name) name = nullptr;
  UNFLAKE_LIBPQ_FUNCTIONS(UNFLAKE_DECLARE)
#undef UNFLAKE_DECLARE
};

// Loads it when it is needed first; throws PgFailure when it is not there.
const LibPq& pq();

}  // namespace unflake
