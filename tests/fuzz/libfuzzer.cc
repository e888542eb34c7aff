// The entry points of libFuzzer: paceline-fuzz --target=NAME [its own options] [FOLDER ...]

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/target.h"

namespace {
const paceline::fuzz::Target* target = nullptr;
}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  constexpr std::string_view kOption = "--target=";
  for (int i = 1; i < *count; ++i) {
    const std::string_view argument = (*arguments)[i];
    if (argument.starts_with(kOption)) target = paceline::fuzz::target_named(argument.substr(kOption.size()));
  }
  if (target != nullptr) return 0;
  std::fputs("paceline-fuzz: give --target= one of these:", stderr);
  for (const auto& each : paceline::fuzz::targets()) std::fprintf(stderr, " %s", each.name);
  std::fputs("\n", stderr);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return target->run(std::as_bytes(std::span(data, size)));
}
