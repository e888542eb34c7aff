#include "base/process_end.h"

#include <string.h>

#include "base/text.h"

namespace paceline {

std::string exit_text(std::optional<int> exit_code, std::optional<int> signal) {
  if (signal) {
    const char* const name = ::sigabbrev_np(*signal);
    return str_cat("killed by signal ", *signal, name != nullptr ? str_cat(" (SIG", name, ")") : "");
  }
  return exit_code ? str_cat("exited with code ", *exit_code) : "";
}

}  // namespace paceline
