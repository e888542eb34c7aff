// paceline-worker: trains the built-in models on files; or, with --steps, becomes another program and tells
// of its steps.

#include <string_view>

#include "runtime/agent/tell_steps.h"
#include "runtime/bin/run_member.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--steps")
    return paceline::agent::tell_steps(argc - 2, argv + 2);
  return paceline::run_member(argc, argv, {});
}
