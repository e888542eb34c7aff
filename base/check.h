#pragma once

// Assertions for bugs of ours, on in every build. The world's failures (a file, a peer, a user's YAML) are
// never checked this way: they return absl::Status.

namespace paceline {

// Prints `file:line: check failed: expression: message` to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* expression, const char* message);

}  // namespace paceline

// PL_CHECK(condition, "what must hold and why"): aborts when `condition` is false.
#define PL_CHECK(condition, message)                                     \
  do {                                                                   \
    if (!(condition)) [[unlikely]]                                       \
      ::paceline::check_failed(__FILE__, __LINE__, #condition, message); \
  } while (false)
