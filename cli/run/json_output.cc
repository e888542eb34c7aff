#include <nlohmann/json.hpp>

#include "base/sanitize.h"
#include "cli/run/output.h"
#include "controller/cluster/kube/field_json.h"

namespace paceline::cli {

namespace {

using Json = nlohmann::ordered_json;

class JsonOutput final : public RunOutput {
 public:
  JsonOutput(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}

  void started(const RunState& s) override {
    line({{"type", "started"},
          {"run", s.name},
          {"job", s.job},
          {"namespace", s.ns},
          {"folder", s.folder},
          {"created", s.created}});
  }
  void progress(const RunState& s) override {
    if (s.elapsed_seconds < next_line_seconds_ || s.progress.step == last_step_) return;
    next_line_seconds_ = s.elapsed_seconds + kSecondsBetweenLines;
    last_step_ = s.progress.step;
    Json json = Json::parse(to_json(s, -1));
    Json event = {{"type", "progress"}};
    for (const char* key : {"phase", "step", "totalSteps", "epoch", "loss", "testLoss", "testAccuracy",
                            "testAuc", "samplesPerSecond", "droppedSamples", "goodput", "etaSeconds",
                            "elapsedSeconds", "samples", "bytesExchanged", "members"}) {
      if (json.contains(key)) event[key] = json[key];
    }
    line(event);
  }
  void view(const coordinator::ViewRecord& v) override {
    line({{"type", "view"}, {"generation", v.generation.value}, {"members", v.members}});
  }
  void view_change(const api::ViewChange& change) override {
    Json event = {{"type", "viewChange"}};
    event.update(kube::fields_to_json(change));
    line(event);
  }
  void straggler(const coordinator::StragglerChange& change) override {
    Json event = {{"type", "straggler"}, {"found", change.found}};
    event.update(kube::fields_to_json(change.straggler));
    event.erase("action");  // the planner decides it later: status.stragglers
    line(event);
  }
  void replacement(const api::StragglerReplacement& each) override {
    Json event = {{"type", "stragglerReplacement"}};
    event.update(kube::fields_to_json(each));
    line(event);
  }
  void preflight(const api::Preflight& result) override {
    Json event = {{"type", "preflight"}};
    event.update(kube::fields_to_json(result));
    line(event);
  }
  void rebalance(const api::Rebalance& rebalance) override {
    Json event = {{"type", "rebalance"}};
    event.update(kube::fields_to_json(rebalance));
    line(event);
  }
  void evaluation(const RunState& s, const coordinator::EvaluationRecord& e) override {
    Json event = {{"type", "evaluation"},
                  {"step", e.step},
                  {"loss", e.loss},
                  {"accuracy", e.accuracy},
                  {"samples", e.samples},
                  {"elapsedSeconds", s.elapsed_seconds},
                  {"targetReached", e.target_reached}};
    if (e.auc) event["auc"] = *e.auc;
    if (!e.observer.empty()) event["evaluator"] = e.observer;
    line(event);
  }
  void checkpoint(const coordinator::CheckpointRecord& c) override {
    Json event = {{"type", "checkpoint"}, {"step", c.step}, {"path", c.path}, {"bytes", c.bytes}};
    if (c.stall) event["stallSeconds"] = std::chrono::duration<double>(*c.stall).count();
    if (!c.error.empty()) event["error"] = c.error;
    line(event);
  }
  void note(std::string_view message) override {
    line({{"type", "note"}, {"message", std::string(message)}});
  }
  void finished(const RunState& s) override {
    Json event = {{"type", "finished"}};
    event.update(Json::parse(to_json(s, -1)));
    line(event);
  }

 private:
  static constexpr double kSecondsBetweenLines = 0.5;
  void line(const Json& json) {
    const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    out_ << (terminal_ ? sanitize(text) : text) << std::endl;
  }
  std::ostream& out_;
  const bool terminal_;
  double next_line_seconds_ = 0;
  std::int64_t last_step_ = -1;
};

}  // namespace

std::unique_ptr<RunOutput> make_json_output(std::ostream& out, bool terminal) {
  return std::make_unique<JsonOutput>(out, terminal);
}

}  // namespace paceline::cli
