# cmake -DOUTPUT=embedded_assets.cc [-DBUILD=dashboard/build] [-DREQUIRED=ON] -P embed-dashboard.cmake
#
# Runs BUILD with an empty folder, compresses each file that it leaves there, and writes them as data of a C++ source. Without BUILD, or where it
# fails and is not REQUIRED, the source has none.

get_filename_component(folder ${OUTPUT} DIRECTORY)
set(files)
if(BUILD)
  file(REMOVE_RECURSE ${folder}/files ${folder}/compressed)
  file(MAKE_DIRECTORY ${folder}/files ${folder}/compressed)
  execute_process(COMMAND ${BUILD} ${folder}/files RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(result EQUAL 0)
    file(GLOB_RECURSE files RELATIVE ${folder}/files ${folder}/files/*)
  elseif(REQUIRED STREQUAL ON)
    message(FATAL_ERROR "dashboard/build failed:\n${text}")
  else()
    message("dashboard/build failed: this paceline has no page for its dashboard. It said:\n${text}")
  endif()
endif()

set(data)
set(table)
set(count 0)
string(REPEAT "." 96 line)  # 24 bytes as \\x00
list(SORT files)
foreach(file ${files})
  if(file MATCHES "\\.map$")
    continue()
  endif()
  set(compressed ${folder}/compressed/${count}.gz)
  file(ARCHIVE_CREATE OUTPUT ${compressed} PATHS ${folder}/files/${file} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
  file(READ ${compressed} bytes HEX)
  string(LENGTH "${bytes}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
  # Pieces of a literal: compilers refuse a very long one.
  string(REGEX REPLACE "(${line})" "\\1\"\n    \"" bytes "${bytes}")
  set(path "/${file}")
  if(file STREQUAL "index.html")
    set(path "/")
  endif()
  string(APPEND data "constexpr char kFile${count}[] =\n    \"${bytes}\";\n")
  string(APPEND table "    Asset{\"${path}\", {kFile${count}, ${size}}},\n")
  math(EXPR count "${count} + 1")
endforeach()

file(WRITE ${OUTPUT}.new "// Made by cmake/embed-dashboard.cmake.
#include <array>
#include <span>

#include \"controller/dashboard/assets.h\"

namespace paceline::dashboard {

namespace {

${data}
constexpr std::array<Asset, ${count}> kAssets = {{
${table}}};

}  // namespace

std::span<const Asset> embedded_assets() {
  return kAssets;
}

}  // namespace paceline::dashboard
")
file(RENAME ${OUTPUT}.new ${OUTPUT})
