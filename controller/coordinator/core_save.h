#pragma once

// A checkpoint that somebody asked for. Rank 0 is told until it has tried one of a step that is no earlier
// than the job's was then, or that step is lost. Another text is another request; an empty one is none. Pure.

#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
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
  // A view's first step is this one. True: the state that was to be saved is lost, which answers the request.
  bool begins_at(Step step) {
    if (!is_open() || step >= step_) return false;
    answer_ = plan::SaveAnswer{text_, step - 1,
                               str_cat("the checkpoint that was asked for can't be saved: step ", step_,
                                       " is lost, and members go on from step ", step - 1)};
    return true;
  }
  const std::optional<plan::SaveAnswer>& answer() const { return answer_; }

 private:
  std::string text_;
  Step step_ = 0;
  std::optional<plan::SaveAnswer> answer_;  // the newest
};

}  // namespace paceline::coordinator
