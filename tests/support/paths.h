#pragma once

// Files of the tree and of the build. Where those are is compiled into a file of its own (paths.cc.in): all
// others compile to the same in every clone, and the compiler's cache has them.

#include <string>
#include <string_view>

namespace paceline {

std::string source_path(std::string_view path);  // "examples/digits-allreduce.yaml", of the tree
std::string binary_path(std::string_view path);  // "bin/paceline-worker", of the build

}  // namespace paceline
