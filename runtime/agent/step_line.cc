#include "runtime/agent/step_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "absl/status/status.h"
#include "base/fields.h"
#include "base/sanitize.h"
#include "base/text.h"

namespace paceline::agent {

namespace {

constexpr double kMostMs = 86'400'000;  // a day
constexpr double kNsPerMs = 1e6;
constexpr std::string_view kBlanks = " \t\r";

struct Key {
  std::string_view name;
  std::int64_t member::StepTimes::*time;
  bool own = false;
};
constexpr std::array<Key, 7> kKeys{{{"input_ms", &member::StepTimes::input, true},
                                    {"compute_ms", &member::StepTimes::compute, true},
                                    {"update_ms", &member::StepTimes::update, true},
                                    {"wait_ms", &member::StepTimes::wait},
                                    {"transfer_ms", &member::StepTimes::transfer},
                                    {"checkpoint_ms", &member::StepTimes::checkpoint},
                                    {"total_ms", &member::StepTimes::step}}};
constexpr std::size_t kStepBit = kKeys.size();

template <typename... Parts>
absl::Status wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(str_cat(parts...));
}

template <typename Number>
bool reads(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

absl::Status set_step(std::string_view text, StepLine& line) {
  if (reads(text, line.step) && line.step >= 1 && line.step <= kMostCount) return absl::OkStatus();
  return wrong("step is \"", sanitize(text), "\"; allowed: a whole number, the first step is 1");
}

absl::Status set_time(const Key& key, std::string_view text, StepLine& line) {
  double ms = 0;
  if (!reads(text, ms) || !(ms >= 0 && ms <= kMostMs))
    return wrong(key.name, " is \"", sanitize(text), "\"; allowed: milliseconds, 0 to a day");
  line.times.*key.time = std::llround(ms * kNsPerMs);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StepLine> parse_step_line(std::string_view text) {
  if (text.size() > kMostLineBytes) return wrong("it has ", text.size(), " bytes; allowed: ", kMostLineBytes);
  StepLine line;
  std::uint32_t seen = 0;
  bool own = false;
  for (std::size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = text.find_first_not_of(kBlanks, end);
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return wrong("\"", sanitize(word), "\" is not of the form key=value");
    const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
    const auto* const key = std::ranges::find(kKeys, name, &Key::name);
    const bool is_step = name == "step";
    if (!is_step && key == kKeys.end()) {
      if (line.unknown.empty()) line.unknown = sanitize(name);
      continue;
    }
    const std::size_t bit = is_step ? kStepBit : static_cast<std::size_t>(std::distance(kKeys.begin(), key));
    if ((seen & (1U << bit)) != 0) return wrong(name, " is there twice");
    seen |= 1U << bit;
    const absl::Status set = is_step ? set_step(value, line) : set_time(*key, value, line);
    if (!set.ok()) return set;
    own |= !is_step && key->own;
  }
  if ((seen & (1U << kStepBit)) == 0) return wrong("step is missing");
  if (!own) return wrong("its own time is missing: one of input_ms, compute_ms and update_ms at least");
  line.times.step = std::max(line.times.step, line.times.parts());
  return line;
}

}  // namespace paceline::agent
