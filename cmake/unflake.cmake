# Off in the preset dev, which tells of a source of a stage that has forgotten an include. Tests have
# theirs precompiled always.
option(UNFLAKE_PRECOMPILED_HEADERS "Precompile the standard library's headers" ON)
set(CMAKE_PCH_WARN_INVALID OFF)

# Off there too: what changes often is compiled by itself.
option(UNFLAKE_TOGETHER "Compile several sources of a stage at once" ON)

set(UNFLAKE_SANITIZE "" CACHE STRING "Sanitizers for everything that is built, as for -fsanitize=")

add_library(unflake_options INTERFACE)
target_compile_options(unflake_options INTERFACE -Wall -Wextra)
target_include_directories(unflake_options INTERFACE
  ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)
if(UNFLAKE_SANITIZE)
  target_compile_options(unflake_options INTERFACE
    -fsanitize=${UNFLAKE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O0)
  target_link_options(unflake_options INTERFACE -fsanitize=${UNFLAKE_SANITIZE})
else()
  # g++ 12 warns of impossible things in code that it has instrumented.
  target_compile_options(unflake_options INTERFACE -Werror)
endif()
# Its garbage collector takes a tenth of the time and has nothing to win on sources of this size.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(unflake_options INTERFACE
    "SHELL:--param ggc-min-expand=200" "SHELL:--param ggc-min-heapsize=1048576")
endif()

# Sources that are compiled at once take about half the time that they take one by one. Names that
# only one file knows must then differ from those of its neighbours. A source's group follows from
# its folder and name alone, so that a new file changes no other group. A source with the property
# SKIP_UNITY_BUILD_INCLUSION is compiled by itself.
function(unflake_compile_together target groups)
  if(NOT UNFLAKE_TOGETHER OR NOT groups)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME)
    get_filename_component(folder ${source} ABSOLUTE)
    get_filename_component(folder ${folder} DIRECTORY)
    get_filename_component(folder ${folder} NAME)
    string(MD5 digest ${name})
    string(SUBSTRING ${digest} 0 4 digits)
    math(EXPR group "0x${digits} % ${groups}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# A stage of the pipeline: every .cc of the folder and its subfolders but the unit tests, compiled in
# as many groups a folder as TOGETHER says. A COLD one waits for tests, disks and people, and is compiled for
# less than the highest speed.
function(unflake_stage stage)
  cmake_parse_arguments(ARG "COLD" "TOGETHER" "LINK;HIDDEN;WITHOUT" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${stage}/*.cc
    ${CMAKE_CURRENT_SOURCE_DIR}/${stage}/*/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  if(ARG_WITHOUT)
    list(REMOVE_ITEM sources ${ARG_WITHOUT})
  endif()
  add_library(unflake_${stage} STATIC ${sources})
  target_link_libraries(unflake_${stage} PUBLIC unflake_options ${ARG_LINK} PRIVATE ${ARG_HIDDEN})
  unflake_compile_together(unflake_${stage} "${ARG_TOGETHER}")
  if(ARG_COLD AND CMAKE_BUILD_TYPE STREQUAL Release)
    target_compile_options(unflake_${stage} PRIVATE -O1)
  endif()
  if(UNFLAKE_PRECOMPILED_HEADERS)
    unflake_precompile(unflake_${stage} unflake_util
      <algorithm> <chrono> <filesystem> <functional> <map> <optional> <string> <variant> <vector> <fmt/format.h> <nlohmann/json.hpp>)
    # g++ 12 forgets that they are the system's, and warns of impossible things in them.
    target_compile_options(unflake_${stage} PRIVATE
      -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endfunction()

function(unflake_precompile target first)
  if(target STREQUAL first)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${first})
  endif()
endfunction()

# For tests: compiling them takes longer than running them.
function(unflake_compile_quickly target)
  target_compile_options(${target} PRIVATE -O0)
endfunction()

# The same for those of GoogleTest, whose headers are compiled once for all.
function(unflake_compile_test target)
  unflake_compile_quickly(${target})
  unflake_precompile(${target} unflake_test_headers <gtest/gtest.h> <gmock/gmock.h> <fmt/format.h>)
endfunction()

# The unit tests that stand beside a stage's code, as one binary. They are compiled once, without
# sanitizers, and run twice: with the optimised stages, and SANITIZED ones with those of a build with
# sanitizers, which takes them from UNFLAKE_COMPILED_TESTS.
set(UNFLAKE_COMPILED_TESTS "" CACHE PATH "Where another build has put the compiled unit tests")

function(unflake_stage_tests stage)
  cmake_parse_arguments(ARG "SANITIZED" "TOGETHER" "" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${stage}/*_test.cc
    ${CMAKE_SOURCE_DIR}/src/${stage}/*/*_test.cc)
  if(NOT sources OR (UNFLAKE_COMPILED_TESTS AND NOT ARG_SANITIZED))
    return()
  endif()
  if(UNFLAKE_COMPILED_TESTS)
    add_library(${stage}_tests STATIC IMPORTED)
    set_target_properties(${stage}_tests PROPERTIES
      IMPORTED_LOCATION ${UNFLAKE_COMPILED_TESTS}/lib${stage}_tests.a)
    # As objects they come first, so that theirs is the code of what is inline.
    add_executable(${stage}_test $<TARGET_OBJECTS:unflake_${stage}>)
  else()
    add_library(${stage}_tests STATIC ${sources})
    set_target_properties(${stage}_tests PROPERTIES
      ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/tests)
    target_include_directories(${stage}_tests PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    unflake_compile_test(${stage}_tests)
    unflake_compile_together(${stage}_tests "${ARG_TOGETHER}")
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${stage}_test.cc CONTENT "")
    add_executable(${stage}_test ${CMAKE_CURRENT_BINARY_DIR}/${stage}_test.cc)
  endif()
  target_link_libraries(${stage}_test PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,${stage}_tests>)
  unflake_tests_use(${stage} unflake_${stage} GTest::gtest_main GTest::gmock)
  add_dependencies(unit_tests ${stage}_test)
  add_test(NAME ${stage} COMMAND ${stage}_test)
  set_tests_properties(${stage} PROPERTIES LABELS unit)
endfunction()

# What a stage's unit tests need beside the stage.
function(unflake_tests_use stage)
  if(NOT TARGET ${stage}_test)
    return()
  endif()
  target_link_libraries(${stage}_test PRIVATE ${ARGN})
  if(NOT UNFLAKE_COMPILED_TESTS)
    target_link_libraries(${stage}_tests PRIVATE ${ARGN})
  endif()
endfunction()

# Compiles a stage's schema/*.sql into it: a binary knows its schema wherever it is copied to.
function(unflake_embed_migrations stage)
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${stage}/schema/*.sql)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${scripts})
  list(LENGTH scripts MIGRATION_COUNT)
  set(MIGRATIONS "")
  foreach(script IN LISTS scripts)
    file(READ ${script} text)
    string(APPEND MIGRATIONS "      R\"sql(${text})sql\",\n")
  endforeach()
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${stage}/migration_scripts.cc)
  configure_file(${stage}/migration_scripts.cc.in ${generated} @ONLY)
  target_sources(unflake_${stage} PRIVATE ${generated})
endfunction()

# The same for the header that goes into other people's projects with a patch.
function(unflake_embed_sync_header stage)
  set(header ${CMAKE_SOURCE_DIR}/data/unflake_sync.h)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
  file(READ ${header} UNFLAKE_SYNC_HEADER)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${stage}/unflake_sync.cc)
  configure_file(${stage}/repair/unflake_sync.cc.in ${generated} @ONLY)
  target_sources(unflake_${stage} PRIVATE ${generated})
endfunction()

# The shipped characteristic functions, so that unflake has them wherever it is.
function(unflake_embed_functions stage)
  set(data ${CMAKE_SOURCE_DIR}/data/characteristic-functions.toml)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${data})
  file(READ ${data} SHIPPED_FUNCTIONS)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${stage}/shipped_functions.cc)
  configure_file(${stage}/shipped_functions.cc.in ${generated} @ONLY)
  target_sources(unflake_${stage} PRIVATE ${generated})
endfunction()

# What is preloaded into tests must bring nothing along and depend on nothing but libc, so it is
# built apart from everything else, and never with sanitizers.
function(unflake_agent_library name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/agent/*.cc
    ${CMAKE_SOURCE_DIR}/src/agent/*/*.cc)
  add_library(${name} SHARED ${sources} ${ARGN})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wno-missing-field-initializers -Werror -O2
    -fno-exceptions -fno-rtti -fvisibility=hidden -ftls-model=initial-exec -fno-threadsafe-statics
    -fasynchronous-unwind-tables)
  target_link_options(${name} PRIVATE -nodefaultlibs
    -Wl,-z,now,-z,nodelete,-z,defs,--exclude-libs,ALL)
  target_link_libraries(${name} PRIVATE gcc_eh gcc c)
endfunction()

# This one not even on libc. Constructors may crash, so it comes first; and the fewer segments it
# has, the faster it is loaded.
function(unflake_crash_library name)
  add_library(${name} SHARED ${CMAKE_SOURCE_DIR}/src/crash/crash.cc)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Werror -O2 -fno-exceptions -fno-rtti
    -fvisibility=hidden -fno-stack-protector -fno-builtin -fno-tree-loop-distribute-patterns
    -fasynchronous-unwind-tables)
  target_link_options(${name} PRIVATE -nostdlib
    -Wl,-z,now,-z,nodelete,-z,defs,-z,initfirst,-z,noseparate-code,-z,norelro)
endfunction()

# This one replaces a few functions of libc.
function(unflake_world_library name)
  add_library(${name} SHARED ${CMAKE_SOURCE_DIR}/src/world/world.cc)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Werror -O2 -fno-exceptions -fno-rtti
    -fvisibility=hidden -fno-threadsafe-statics)
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
  target_link_options(${name} PRIVATE -nodefaultlibs -Wl,-z,now,-z,nodelete,-z,defs)
  target_link_libraries(${name} PRIVATE gcc c)
endfunction()

# "wait timed" -> "api_wait | api_timed", and no word -> 0.
function(unflake_flags words prefix result)
  string(REGEX REPLACE "([a-z]+)" "${prefix}_\\1" flags "${words}")
  string(REPLACE " " " | " flags "${flags}")
  if(NOT flags)
    set(flags 0)
  endif()
  set(${result} "${flags}" PARENT_SCOPE)
endfunction()

# Turns data/timing-apis.toml into the list that unflake and the agent number the APIs by, in the
# order of the file: TIMING_GROUP(name, traits, drawn), followed by its calls, each as
# TIMING_API(name, group, traits, edge, timer, time argument, its unit in ns). A word that no enum
# of protocol/timing_apis.h has does not compile.
function(unflake_timing_apis generated)
  set(data ${CMAKE_SOURCE_DIR}/data/timing-apis.toml)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${data})
  file(READ ${data} text)
  string(REGEX REPLACE "[][;]" "." text "${text}")  # they mean something in a CMake list
  string(REPLACE "\n" ";" lines "${text}")
  set(unit_ns 1)
  set(unit_us 1000)
  set(unit_ms 1000000)
  set(unit_s 1000000000)
  set(list "")
  set(next "a group")
  foreach(line IN LISTS lines)
    if(line MATCHES "^(#.*)?$")
      continue()
    elseif(next STREQUAL "its traits" AND
        line MATCHES "^group = { traits = \"([a-z ]*)\", drawn = \"([a-z]+)\" }$")
      unflake_flags("${CMAKE_MATCH_1}" group traits)
      string(APPEND list "TIMING_GROUP(${group}, ${traits}, ${CMAKE_MATCH_2})\n")
      set(next "its calls")
    elseif(NOT next STREQUAL "its traits" AND line MATCHES "^\\.([a-z]+)\\.$")
      set(group ${CMAKE_MATCH_1})
      set(next "its traits")
    elseif(next STREQUAL "its calls" AND line MATCHES "^([a-z0-9_]+) = { traits = \"([a-z ]*)\"(, edge = \
\"([a-z]+)\")?(, timer = \"([a-z]+)\")?(, time = \"([0-9]) (ns|us|ms|s)\")? }$")
      set(name ${CMAKE_MATCH_1})
      set(edge "${CMAKE_MATCH_4}")
      set(timer "${CMAKE_MATCH_6}")
      set(argument "${CMAKE_MATCH_8}")
      set(unit "${CMAKE_MATCH_9}")
      unflake_flags("${CMAKE_MATCH_2}" api traits)
      foreach(column edge timer)
        if(${column} STREQUAL "")
          set(${column} none)
        endif()
      endforeach()
      if(argument STREQUAL "")
        if(traits MATCHES "api_timed")
          message(FATAL_ERROR "${data}: ${name} is timed; say which argument is its time")
        endif()
        set(argument 0)
        set(unit ns)
      endif()
      string(APPEND list
        "TIMING_API(${name}, ${group}, ${traits}, ${edge}, ${timer}, ${argument}, ${unit_${unit}})\n")
    elseif(next STREQUAL "its traits")
      message(FATAL_ERROR "${data}: cannot read \"${line}\"; a group begins with \
group = { traits = \"...\", drawn = \"...\" }")
    else()
      message(FATAL_ERROR "${data}: cannot read \"${line}\"; write NAME = { traits = \"...\" }, with \
edge, timer and time after the traits, as the head of the file says")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${generated} CONTENT "${list}")
endfunction()
