#pragma once

// The main() of a member, for paceline-worker and for a user's own program (docs/custom-model.md):
//
//   int main(int argc, char** argv) {
//     paceline::trainer::Registry registry;
//     registry.add_model("two-moons", make_moons_model);
//     registry.add_dataset("two-moons", make_moons_data);
//     return paceline::run_member(argc, argv, std::move(registry));
//   }
//
// Everything about the job comes from the environment and from the coordinator; --help and --version are the
// only arguments. SIGTERM and SIGINT ask all members to stop after the same step; the process ends within
// about five seconds even where a peer does not answer, sooner at a second signal, and at once at a third. A
// checkpoint that is being written is waited for (stop_signals.h).

#include "runtime/trainer/registry.h"

namespace paceline {

// Call once, before any other thread is started. Logs to stderr.
int run_member(int argc, char** argv, trainer::Registry registry);

}  // namespace paceline
