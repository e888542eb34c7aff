#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace paceline {

void check_failed(const char* file, int line, const char* expression, const char* message) {
  std::fprintf(stderr, "%s:%d: check failed: %s: %s\n", file, line, expression, message);
  std::fflush(stderr);
  std::abort();
}

}  // namespace paceline
