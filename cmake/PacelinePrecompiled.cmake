# Two precompiled headers, for the libraries and for the tests: headers that many files include and that no change of ours touches. Clang reads
# them lazily. GCC loads them whole, so that the tests', with gmock, costs as much as it saves.
#
# paceline_precompile(NAME OPTIONS option ... HEADERS header ... DEPS target ...)
function(paceline_precompile name)
  cmake_parse_arguments(ARG "" "" "OPTIONS;HEADERS;DEPS" ${ARGN})
  list(TRANSFORM ARG_HEADERS REPLACE "(.+)" "<\\1>")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/cmake/precompiled.cc)
  target_compile_options(${name} PRIVATE ${PACELINE_WARNINGS} ${ARG_OPTIONS})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${name} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  # The compiled header names its folder, too. ccache goes by this sum of the text instead.
  list(TRANSFORM ARG_HEADERS PREPEND "#include ")
  list(JOIN ARG_HEADERS "\n" text)
  file(WRITE ${CMAKE_BINARY_DIR}/${name}.cc "${text}\n")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -E -P ${CMAKE_BINARY_DIR}/${name}.cc OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(SHA256 sum "${text}")
  file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx.${PACELINE_PRECOMPILED_SUFFIX}.sum "${sum}")
endfunction()

set(PACELINE_PRECOMPILED_SUFFIX gch)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(PACELINE_PRECOMPILED_SUFFIX pch)
endif()
set(everywhere absl/status/status.h absl/status/statusor.h absl/synchronization/mutex.h
               algorithm atomic chrono cmath functional map memory optional set sstream string thread vector)
paceline_precompile(paceline_headers DEPS absl::status absl::statusor absl::synchronization HEADERS ${everywhere})
if(PACELINE_SANITIZE)
  paceline_precompile(paceline_plain_headers OPTIONS -O0 DEPS absl::status absl::statusor absl::synchronization HEADERS ${everywhere})
endif()
if(PACELINE_TESTS AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  paceline_precompile(paceline_test_headers OPTIONS -fPIE ${PACELINE_TEST_OPTIONS}
    DEPS GTest::gmock GTest::gtest absl::status absl::statusor absl::synchronization
    HEADERS ${everywhere} filesystem fstream gmock/gmock.h gtest/gtest.h)
endif()

# paceline_use_precompiled(NAME source ...): these sources begin with the header. By a relative path, not by REUSE_FROM, which names the full one:
# ccache would take each clone's for another header.
function(paceline_use_precompiled name)
  if(NOT TARGET ${name})
    return()
  endif()
  set(header CMakeFiles/${name}.dir/cmake_pch.hxx)
  set(compiled ${header}.${PACELINE_PRECOMPILED_SUFFIX})
  set(options -Winvalid-pch -include ${header})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(options -Xclang -include-pch -Xclang ${compiled})
  endif()
  foreach(source ${ARGN})
    # Those with options of their own are for other processors, and the compiled header is not.
    get_source_file_property(own ${source} COMPILE_OPTIONS)
    if(NOT own)
      set_source_files_properties(${source} PROPERTIES
        COMPILE_OPTIONS "${options}" OBJECT_DEPENDS ${CMAKE_BINARY_DIR}/${compiled})
    endif()
  endforeach()
endfunction()
