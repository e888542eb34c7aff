# The three kinds of targets of this project. Sources are always listed, never globbed.

set(PACELINE_WARNINGS -Wall -Wextra -Werror -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND PACELINE_WARNINGS -Wthread-safety)
else()
  # GCC 12 reports overlaps and sizes inside its own std::string (GCC bug 105651), and takes a source that another one includes for a header.
  list(APPEND PACELINE_WARNINGS -Wno-restrict -Wno-stringop-overflow -Wno-subobject-linkage)
endif()

# -O1 -g1: at GCC's -O2 -g the checks of address and undefined more than triple the time to compile. NDEBUG stays: Debian's
# abseil is built with it.
if(PACELINE_SANITIZE)
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1 -DNDEBUG")
  add_compile_options(-fsanitize=${PACELINE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PACELINE_SANITIZE})
endif()
if(PACELINE_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # It links what paceline_test(OWN_NEW) makes.
  string(REPLACE "clang++" "clang" CMAKE_C_COMPILER ${CMAKE_CXX_COMPILER})
  enable_language(C)
  set(PACELINE_OWN_NEW_LINKER C)
endif()
# The code under test is optimised. GoogleTest's macros, half of all that is compiled, need no optimisation, and little of it the command line;
# with sanitizers, code that does no arithmetic needs none: it compiles in less than half of the time.
set(PACELINE_TEST_OPTIONS -O1)
set(PACELINE_NO_ARITHMETIC "^cli")
if(PACELINE_SANITIZE)
  set(PACELINE_TEST_OPTIONS -O0)
  set(PACELINE_NO_ARITHMETIC "^(cli|controller_(api|bin|cluster|plan|reconcile)|runtime_(generate|member|trainer))")
endif()
if(PACELINE_SANITIZE MATCHES "undefined")
  # A null pointer that is followed ends an AddressSanitizer build anyway, a wrong dynamic type mostly does; asking at every
  # member access costs a fifth of the time to compile.
  add_compile_options(-fno-sanitize=null,vptr)
endif()

# Programs that share a precompiled header agree on this option, whatever they link.
add_compile_options(-pthread)

find_program(PACELINE_CCACHE ccache)
if(PACELINE_CCACHE)
  # Paths are taken relative to the source tree, so that every build folder and every clone shares one cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1 ${PACELINE_CCACHE})
endif()

find_program(PACELINE_MOLD mold)
if(PACELINE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# paceline_library(NAME SOURCES a.cc ... DEPS target ...)   -> target paceline_NAME, alias Paceline::NAME
function(paceline_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  set(target paceline_${name})
  if(ARG_SOURCES)
    paceline_unite(ARG_SOURCES ${target} ${ARG_SOURCES})
    add_library(${target} STATIC ${ARG_SOURCES})
    target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>
                                                $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/paceline>)
    target_compile_options(${target} PRIVATE ${PACELINE_WARNINGS})
    set(headers paceline_headers)
    if(name MATCHES "${PACELINE_NO_ARITHMETIC}")
      target_compile_options(${target} PRIVATE ${PACELINE_TEST_OPTIONS})
      if(PACELINE_SANITIZE)
        set(headers paceline_plain_headers)
      endif()
    endif()
    paceline_use_precompiled(${headers} ${ARG_SOURCES})
    target_link_libraries(${target} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>
                                                   $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/paceline>)
    target_link_libraries(${target} INTERFACE ${ARG_DEPS})
  endif()
  add_library(Paceline::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
endfunction()

# paceline_program(NAME SOURCES ... DEPS ...)   -> build/bin/NAME
function(paceline_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  paceline_unite(ARG_SOURCES ${name} ${ARG_SOURCES})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${PACELINE_WARNINGS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()

configure_file(${CMAKE_SOURCE_DIR}/tests/support/paths.cc.in ${CMAKE_BINARY_DIR}/generated/tests/support/paths.cc)
add_library(paceline_paths STATIC EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/generated/tests/support/paths.cc)
target_include_directories(paceline_paths PRIVATE ${CMAKE_SOURCE_DIR})
set_target_properties(paceline_paths PROPERTIES POSITION_INDEPENDENT_CODE ON)

# Every test has one home: the build whose PACELINE_TESTS names its kind (CMakePresets.json). The kind of a test is its label.
#   unit         one part of the code, and the rules of the house: address + undefined
#   integration  whole programs, clusters and benchmarks: release
#   threads      the programs of both kinds that start threads, once more: thread
set(PACELINE_UNIT_TESTS FALSE)
set(PACELINE_INTEGRATION_TESTS FALSE)
if("unit" IN_LIST PACELINE_TESTS)
  set(PACELINE_UNIT_TESTS TRUE)
endif()
if("integration" IN_LIST PACELINE_TESTS)
  set(PACELINE_INTEGRATION_TESTS TRUE)
endif()
# Everything that the tests of this build need.
add_custom_target(paceline_tests)

# paceline_test(NAME [ONE_THREAD] [COUNTS_ALLOCATIONS|OWN_NEW] SOURCES a.cc ... DEPS target ... [LABELS unit|integration])
#   -> one GoogleTest program, one ctest entry.
# ONE_THREAD: nothing in it starts a thread, so that ThreadSanitizer has nothing to find and its build leaves the program out;
# in other builds the program ends where one is started all the same.
# COUNTS_ALLOCATIONS: with tests/support/allocation_counter.h; OWN_NEW: with an operator new of its own. For C++ Clang links ThreadSanitizer's operator
# new ahead of such a one; linked as C, the program has its own, whose malloc is watched all the same.
# scripts/test counts the single test cases from the program's own report.
function(paceline_test name)
  cmake_parse_arguments(ARG "ONE_THREAD;COUNTS_ALLOCATIONS;OWN_NEW" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(ARG_ONE_THREAD)
    list(APPEND ARG_DEPS paceline_one_thread)
  endif()
  paceline_unite(ARG_SOURCES ${name} ${ARG_SOURCES})
  if(ARG_COUNTS_ALLOCATIONS)
    list(APPEND ARG_SOURCES ${CMAKE_SOURCE_DIR}/tests/support/allocation_counter.cc)  # alone: GCC warns of calls of an operator new that it sees
    set(ARG_OWN_NEW TRUE)
  endif()
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SOURCES})
  if(ARG_OWN_NEW AND PACELINE_OWN_NEW_LINKER)
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE ${PACELINE_OWN_NEW_LINKER})
  endif()
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${PACELINE_WARNINGS} ${PACELINE_TEST_OPTIONS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} paceline_paths GTest::gmock GTest::gtest GTest::gtest_main)
  paceline_use_precompiled(paceline_test_headers ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  # A program can be built by its name in every build; the tests of this one run it only where it is at home.
  if(NOT ARG_LABELS IN_LIST PACELINE_TESTS AND (ARG_ONE_THREAD OR NOT "threads" IN_LIST PACELINE_TESTS))
    return()
  endif()
  add_dependencies(paceline_tests ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(PACELINE_SANITIZE)
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
