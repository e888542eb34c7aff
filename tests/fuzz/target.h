#pragma once

// Fuzz targets: functions that give bytes to a parser of the bytes of others, and check what must hold for
// whatever comes out of it (PL_CHECK). libFuzzer runs them (scripts/fuzz), and so does fuzz_test, with the
// committed inputs and some mutations of them. One thread at a time; a target keeps nothing from one input to
// the next that a later one could find.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::fuzz {

using Input = std::span<const std::byte>;

struct Target {
  const char* name;  // of the folders of its inputs, and of the file of its function
  int (*run)(Input input);
  int mutations;  // that fuzz_test makes: about a second's
};
std::span<const Target> targets();
// Null: there is none.
const Target* target_named(std::string_view name);

// Inputs that go deep, of those targets whose inputs are no text: the committed files seed-* are written from
// them (fuzz_test.cc).
std::vector<std::string> binary_seeds(std::string_view target);

inline std::string_view text_of(Input input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

int fuzz_checkpoint_manifest(Input input);
int fuzz_coordinator_core(Input input);
int fuzz_dashboard_api(Input input);
int fuzz_dashboard_board(Input input);
int fuzz_exec_credential(Input input);
int fuzz_kubeconfig(Input input);
int fuzz_pserver_frame(Input input);
int fuzz_rendezvous(Input input);
int fuzz_safetensors(Input input);
int fuzz_series_record(Input input);
int fuzz_step_line(Input input);
int fuzz_training_job(Input input);
int fuzz_transport_frame(Input input);
int fuzz_watch_decoder(Input input);

}  // namespace paceline::fuzz
