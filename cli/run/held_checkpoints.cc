#include "cli/run/held_checkpoints.h"

#include <algorithm>

namespace paceline::cli {

void HeldCheckpoints::add(const coordinator::CheckpointRecord& record, TimePoint now) {
  held_.push_back({record, now + kMost});
  if (record.error.empty()) {
    newest_ = std::max(newest_.value_or(record.step), record.step);
  } else {
    failed_ = FailedSave{record.step, record.error};
  }
}

std::optional<FailedSave> HeldCheckpoints::failed_save() const {
  return failed_ && failed_->step > newest_.value_or(-1) ? failed_ : std::nullopt;
}

std::vector<coordinator::CheckpointRecord> HeldCheckpoints::take(Step told, TimePoint now) {
  std::vector<coordinator::CheckpointRecord> due;
  while (!held_.empty() && (held_.front().record.step <= told || held_.front().until <= now)) {
    due.push_back(held_.front().record);
    held_.pop_front();
  }
  return due;
}

}  // namespace paceline::cli
