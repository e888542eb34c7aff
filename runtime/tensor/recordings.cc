#include "runtime/tensor/recordings.h"

#include <algorithm>

namespace paceline::tensor {

Recordings::Kind& Recordings::kind(const RunContext& context) {
  for (Kind& known : kinds_) {
    if (known.context.repeats(context)) return known;
  }
  if (kinds_.size() == kMostKinds) kinds_.erase(std::ranges::min_element(kinds_, {}, &Kind::used));
  kinds_.push_back({context, 0, {}});
  return kinds_.back();
}

std::unique_ptr<Recording>& Recordings::of(const RunContext& context, std::size_t part) {
  Kind& found = kind(context);
  found.used = ++uses_;
  if (found.parts.size() <= part) found.parts.resize(part + 1);
  return found.parts[part];
}

}  // namespace paceline::tensor
