#pragma once

// Ctrl-C (SIGINT, SIGTERM) as a stop token, while it lives. To be made before other threads are, which
// inherit that these signals are blocked.
//
// Asked once, what goes on has kGrace to end; then, or when asked again, the process ends with `exit_code`.

#include <stop_token>
#include <thread>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace paceline::cli {

class Interrupt {
 public:
  static constexpr Duration kGrace = std::chrono::seconds(1);

  explicit Interrupt(int exit_code);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return source_.get_token(); }

 private:
  void wait(int exit_code);
  std::stop_source source_;
  UniqueFd signals_, ended_;
  std::jthread thread_;  // last: it uses the above
};

}  // namespace paceline::cli
