#pragma once

// A checkpoint that somebody asked for. Rank 0 is told until it has tried one of a step that is no earlier
// than the job's was then. Another text is another request; an empty one is none. Pure.

#include <optional>
#include <string>
#include <utility>

#include "controller/coordinator/report.h"
#include "controller/plan/observed.h"

namespace paceline::coordinator {

class SaveRequest {
 public:
  // True: it is news. `step`: that the job has reached.
  bool ask(std::string text, Step step) {
    if (text == text_) return false;
    text_ = std::move(text);
    step_ = step;
    return true;
  }
  bool is_open() const { return !text_.empty() && (!answer_ || answer_->request != text_); }
  // True: it answers the request.
  bool take(const CheckpointRecord& record) {
    if (!is_open() || record.step < step_) return false;
    answer_ = plan::SaveAnswer{text_, record.step, record.error};
    return true;
  }
  const std::optional<plan::SaveAnswer>& answer() const { return answer_; }

 private:
  std::string text_;
  Step step_ = 0;
  std::optional<plan::SaveAnswer> answer_;  // the newest
};

}  // namespace paceline::coordinator
