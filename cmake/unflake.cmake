set(UNFLAKE_SANITIZE "" CACHE STRING "Sanitizers for everything that is built, as for -fsanitize=")

add_library(unflake_options INTERFACE)
target_compile_options(unflake_options INTERFACE -Wall -Wextra -Werror)
target_include_directories(unflake_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
if(UNFLAKE_SANITIZE)
  target_compile_options(unflake_options INTERFACE
    -fsanitize=${UNFLAKE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1)
  target_link_options(unflake_options INTERFACE -fsanitize=${UNFLAKE_SANITIZE})
endif()

# A stage of the pipeline: every .cc of the folder but its unit tests.
function(unflake_stage stage)
  cmake_parse_arguments(ARG "" "" "LINK;HIDDEN" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${stage}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  add_library(unflake_${stage} STATIC ${sources})
  target_link_libraries(unflake_${stage} PUBLIC unflake_options ${ARG_LINK} PRIVATE ${ARG_HIDDEN})
endfunction()

# The unit tests that stand beside a stage's code, as one binary.
function(unflake_stage_tests stage)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${stage}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${stage}_test ${sources})
  target_link_libraries(${stage}_test PRIVATE unflake_${stage} ${ARGN} GTest::gtest_main GTest::gmock)
  target_include_directories(${stage}_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  add_test(NAME ${stage} COMMAND ${stage}_test)
  set_tests_properties(${stage} PROPERTIES LABELS unit)
endfunction()
