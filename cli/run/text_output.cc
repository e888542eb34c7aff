#include <cstdint>
#include <utility>

#include "base/sanitize.h"
#include "base/text.h"
#include "cli/run/failed_save.h"
#include "cli/run/output.h"
#include "cli/view/dashboard.h"
#include "controller/diagnosis/straggler_text.h"
#include "controller/diagnosis/view_text.h"

namespace paceline::cli {

namespace {

std::string view_text(const coordinator::ViewRecord& view) {
  std::string names;
  for (const std::string& member : view.members) {
    if (names.size() > 200) {
      names += ", ...";
      break;
    }
    names += (names.empty() ? "" : ", ") + member;
  }
  return str_cat("view ", view.generation.value, ": ", view.members.size(),
                 view.members.size() == 1 ? " member (" : " members (", names, ")");
}

std::string evaluation_text(const coordinator::EvaluationRecord& e, const RunState& state) {
  // An evaluator's comes when training is steps ahead of the checkpoint: it must not look like the newest
  // step.
  std::string text = e.observer.empty() ? str_cat("step ", e.step, ": ")
                                        : str_cat(e.observer, ", checkpoint of step ", e.step, ": ");
  text += str_cat("test loss ", loss_text(e.loss), ", accuracy ", fixed(e.accuracy * 100, 2), " %");
  if (e.auc) text += str_cat(", AUC ", fixed(*e.auc, 4));
  if (e.target_reached) text += str_cat("; the target ", state.target, " is reached");
  return text;
}

std::string checkpoint_text(const coordinator::CheckpointRecord& c) {
  return c.error.empty() ? str_cat("step ", c.step, ": checkpoint ", c.path)
                         : failed_save_text({c.step, c.error});
}

std::string straggler_text(const coordinator::StragglerChange& change) {
  return change.found ? str_cat("straggler: ", change.straggler.message)
                      : diagnosis::end_of(change.straggler);
}

class PlainOutput : public RunOutput {
 public:
  explicit PlainOutput(std::ostream& out) : out_(out) {}

  void started(const RunState& state) override { line(str_cat("run ", state.name, " in ", state.folder)); }
  void progress(const RunState& state) override {
    // The first heartbeat may count steps of which nothing is told yet, not even the loss.
    const bool due =
        state.progress.step > 0 && state.progress.loss && state.elapsed_seconds >= next_line_seconds_;
    if (!due || state.progress.step == last_step_) return;
    next_line_seconds_ = state.elapsed_seconds + kSecondsBetweenLines;
    last_step_ = state.progress.step;
    line(render_progress_line(state));
  }
  void view(const coordinator::ViewRecord& record) override { line(view_text(record)); }
  void view_change(const api::ViewChange& change) override { line(diagnosis::text_of(change)); }
  void straggler(const coordinator::StragglerChange& change) override { line(straggler_text(change)); }
  void replacement(const api::StragglerReplacement& each) override { line(diagnosis::text_of(each)); }
  void preflight(const api::Preflight& result) override { line(result.message); }
  void rebalance(const api::Rebalance& rebalance) override { line(rebalance.message); }
  void evaluation(const RunState& state, const coordinator::EvaluationRecord& record) override {
    line(evaluation_text(record, state));
  }
  void checkpoint(const coordinator::CheckpointRecord& record) override { line(checkpoint_text(record)); }
  void note(std::string_view message) override { line(std::string(message)); }
  void finished(const RunState& state) override {
    for (const std::string& text : render_summary(state, Terminal{})) line(text);
  }

 private:
  static constexpr double kSecondsBetweenLines = 2;
  void line(const std::string& text) { out_ << sanitize(text) << std::endl; }
  std::ostream& out_;
  double next_line_seconds_ = 0;
  std::int64_t last_step_ = -1;
};

class LiveOutput : public RunOutput {
 public:
  LiveOutput(std::ostream& out, int fd) : out_(out), fd_(fd), terminal_(detect_terminal(fd)) {
    out_ << "\x1b[?25l";
  }
  ~LiveOutput() override {
    out_ << "\x1b[?25h" << std::flush;
  }  // the cursor comes back, however the run ends

  void started(const RunState&) override {}
  void progress(const RunState& state) override {
    const Terminal now = detect_terminal(fd_);
    terminal_.columns = now.columns;
    terminal_.rows = now.rows;
    out_ << frame_.draw(render_dashboard(state, terminal_)) << std::flush;
  }
  void view(const coordinator::ViewRecord& record) override { above(view_text(record)); }
  void view_change(const api::ViewChange& change) override { above(diagnosis::text_of(change)); }
  void straggler(const coordinator::StragglerChange& change) override { above(straggler_text(change)); }
  void replacement(const api::StragglerReplacement& each) override { above(diagnosis::text_of(each)); }
  void preflight(const api::Preflight& result) override { above(result.message); }
  void rebalance(const api::Rebalance& rebalance) override { above(rebalance.message); }
  // The view itself has the newest.
  void evaluation(const RunState& state, const coordinator::EvaluationRecord& record) override {
    if (!is_shown(++evaluations_) && !record.target_reached) return;
    above(str_cat(evaluation_text(record, state), few_from_here(evaluations_, "; all are in metrics.jsonl")));
  }
  void checkpoint(const coordinator::CheckpointRecord& record) override {
    if (record.error.empty() || !is_shown(++failed_checkpoints_)) return;
    above(str_cat(checkpoint_text(record), few_from_here(failed_checkpoints_, "")));
  }
  void note(std::string_view message) override { above(std::string(message)); }
  void finished(const RunState& state) override {
    progress(state);
    out_ << "\n";
    for (const std::string& text : render_summary(state, terminal_)) out_ << text << "\n";
    out_ << std::flush;
  }

 private:
  // What comes again and again must not scroll everything else away: the first eight of it stay above the
  // view, then the 16th, the 32nd, ...
  static constexpr std::int64_t kAllShown = 8;
  static bool is_shown(std::int64_t count) { return count <= kAllShown || (count & (count - 1)) == 0; }
  static std::string few_from_here(std::int64_t count, const char* where) {
    return count == kAllShown ? str_cat("  (fewer of these from here on", where, ")") : std::string();
  }

  void above(const std::string& text) { out_ << frame_.print_above({sanitize(text)}) << std::flush; }
  std::ostream& out_;
  const int fd_;
  Terminal terminal_;
  Frame frame_;
  std::int64_t evaluations_ = 0, failed_checkpoints_ = 0;
};

}  // namespace

std::unique_ptr<RunOutput> make_live_output(std::ostream& out, int fd) {
  return std::make_unique<LiveOutput>(out, fd);
}
std::unique_ptr<RunOutput> make_plain_output(std::ostream& out) {
  return std::make_unique<PlainOutput>(out);
}

}  // namespace paceline::cli
