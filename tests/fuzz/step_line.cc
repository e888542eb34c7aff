#include "runtime/agent/step_line.h"

#include <cstdint>

#include "base/check.h"
#include "tests/fuzz/target.h"

namespace paceline::fuzz {

int fuzz_step_line(Input input) {
  const auto line = agent::parse_step_line(text_of(input));
  if (!line.ok()) return 0;
  constexpr std::size_t kMostOfAByte = 4;  // sanitized
  PL_CHECK(line->step >= 0 && line->unknown.size() <= kMostOfAByte * agent::kMostLineBytes,
           "a line of a step");
  const member::StepTimes& times = line->times;
  for (const std::int64_t part :
       {times.input, times.compute, times.wait, times.transfer, times.update, times.checkpoint})
    PL_CHECK(part >= 0 && part <= times.step, "a part of the step");
  PL_CHECK(times.parts() <= times.step, "the step is at least its parts");
  return 0;
}

}  // namespace paceline::fuzz
