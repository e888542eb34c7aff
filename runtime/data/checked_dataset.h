#pragma once

// A user's own data set, whose numbers are looked at as they come: a token or a label that can't be meant,
// and a number that isn't finite, are errors that name the sample, before anything computes with it.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/data/dataset.h"

namespace paceline::data {

struct ValueLimits {
  std::int64_t tokens = 0;   // tokens are in [0, tokens); 0: any that are not negative
  std::int64_t classes = 0;  // labels are in [0, classes); 0: any at all
};

// The same samples. Where the shape says how many values a field has, its tokens are below that, too.
// fetch(): INVALID_ARGUMENT names the set (`name`: "the training set of 'clicks'"), the sample, the field,
// what it holds and what is allowed. INVALID_ARGUMENT here: the shape's vocabularies are not one for each
// field, each 1 to 2^31.
absl::StatusOr<std::shared_ptr<const Dataset>> check_values(std::shared_ptr<const Dataset> samples,
                                                            std::string name, const ValueLimits& limits);

}  // namespace paceline::data
