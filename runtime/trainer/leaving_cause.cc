#include "runtime/trainer/leaving_cause.h"

namespace paceline::trainer {

v1::Leaving::Cause leaving_cause(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kResourceExhausted:
      return v1::Leaving::OUT_OF_MEMORY;
    case absl::StatusCode::kOutOfRange:
      return v1::Leaving::NOT_FINITE;
    case absl::StatusCode::kDataLoss:
      return v1::Leaving::DATA_UNREADABLE;
    default:
      return v1::Leaving::OTHER;
  }
}

}  // namespace paceline::trainer
