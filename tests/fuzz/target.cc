#include "tests/fuzz/target.h"

#include <algorithm>
#include <array>

namespace paceline::fuzz {

std::span<const Target> targets() {
  static constexpr std::array kTargets = {
      Target{"checkpoint_manifest", fuzz_checkpoint_manifest, 1500},
      Target{"coordinator_core", fuzz_coordinator_core, 200},
      Target{"dashboard_api", fuzz_dashboard_api, 500},
      Target{"dashboard_board", fuzz_dashboard_board, 200},
      Target{"exec_credential", fuzz_exec_credential, 1000},
      Target{"kubeconfig", fuzz_kubeconfig, 200},
      Target{"pserver_frame", fuzz_pserver_frame, 8000},
      Target{"rendezvous", fuzz_rendezvous, 200},
      Target{"safetensors", fuzz_safetensors, 500},
      Target{"series_record", fuzz_series_record, 500},
      Target{"step_line", fuzz_step_line, 4000},
      Target{"training_job", fuzz_training_job, 100},
      Target{"transport_frame", fuzz_transport_frame, 4000},
      Target{"watch_decoder", fuzz_watch_decoder, 60},
  };
  return kTargets;
}

const Target* target_named(std::string_view name) {
  const auto all = targets();
  const auto found = std::ranges::find(all, name, &Target::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace paceline::fuzz
