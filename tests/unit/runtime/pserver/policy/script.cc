#include "tests/unit/runtime/pserver/policy/script.h"

#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "base/text.h"
#include "runtime/pserver/policy/policy.h"
#include "tests/support/transcript.h"

namespace paceline::pserver {
namespace {

using Options = std::map<std::string, std::string>;

std::int64_t number(const Options& options, const std::string& key, std::int64_t otherwise) {
  const auto at = options.find(key);
  return at == options.end() ? otherwise : std::stoll(at->second);
}

v1::ParameterServerSpec spec_of(const std::string& mode, const Options& options) {
  v1::ParameterServerSpec spec;
  spec.set_workers(number(options, "workers", 1));
  spec.set_gradients_per_step(number(options, "gradients", spec.workers()));
  spec.set_units_per_step(spec.gradients_per_step());
  if (mode == "asynchronous") spec.set_synchronization(v1::ParameterServerSpec::ASYNCHRONOUS);
  if (mode == "bounded") spec.set_synchronization(v1::ParameterServerSpec::BOUNDED_STALENESS);
  spec.set_staleness(number(options, "staleness", 0));
  spec.set_units_per_step(number(options, "units", spec.units_per_step()));
  return spec;
}

PolicyStart start_of(const v1::ParameterServerSpec& spec, const Options& options) {
  PolicyStart start;
  start.step = number(options, "step", 0);
  start.total_steps = number(options, "steps", 1);
  start.units.units_per_step = spec.units_per_step();
  start.units.below = number(options, "below", 0);
  if (const auto at = options.find("missing"); at != options.end()) {
    std::istringstream list(at->second);
    for (std::string unit; std::getline(list, unit, ',');) start.units.missing.push_back(std::stoll(unit));
  }
  return start;
}

class Player {
 public:
  std::string play(const std::string& line) {
    std::istringstream in(line);
    std::string verb, word;
    in >> verb;
    out_.str("");
    if (verb == "policy") {
      std::string mode;
      in >> mode;
      Options options;
      while (in >> word) options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
      const auto spec = spec_of(mode, options);
      policy_ = *make_policy(spec, start_of(spec, options));
      turns_.clear();
    } else if (verb == "units") {
      const UnitsApplied units = policy_->units();
      out_ << "  " << units.count() << " units, step " << policy_->step() << ": below " << units.below;
      if (!units.missing.empty()) out_ << " without";
      for (const Unit unit : units.missing) out_ << " " << unit;
      out_ << "\n";
    } else {
      while (in >> word) event(verb, std::stoi(word));
    }
    return out_.str();
  }

 private:
  void event(const std::string& verb, int worker) {
    if (verb == "join") return print(policy_->joined(worker));
    const auto turn = turns_.find(worker);
    const std::optional<Unit> unit = turn == turns_.end() ? std::nullopt : std::optional(turn->second);
    if (unit) turns_.erase(turn);
    if (verb == "left") return print(policy_->left(worker));
    if (verb != "commit") throw std::invalid_argument(verb);
    if (!unit) {
      out_ << "  worker " << worker << " has no turn\n";
      return;
    }
    print(policy_->committed(worker, *unit));
  }

  void print(const Effects& effects) {
    for (const Update& update : effects.updates) {
      out_ << "  update " << update.version << ":";
      for (const Gradient& g : update.gradients) out_ << " " << g.worker << ":" << g.unit << "@" << g.read;
      if (update.scale != 1) out_ << ", times " << update.scale;
      out_ << "\n";
    }
    for (const Gradient& g : effects.drops)
      out_ << "  drop " << g.worker << ":" << g.unit << "@" << g.read << "\n";
    for (const Turn& turn : effects.turns) {
      turns_[turn.worker] = turn.unit;
      out_ << "  worker " << turn.worker << " computes " << turn.unit << " at version " << turn.read;
      if (turn.next >= 0) out_ << ", then " << turn.next;
      out_ << "\n";
    }
    if (effects.finished) out_ << "  finished\n";
  }

  std::unique_ptr<Policy> policy_;
  std::map<int, Unit> turns_;
  std::ostringstream out_;
};

}  // namespace

std::string run_transcript(const std::string& transcript) {
  Player player;
  return replay(transcript, [&](const std::string& command) { return player.play(command); });
}

}  // namespace paceline::pserver
