#include <google/protobuf/stubs/logging.h>

#include <chrono>
#include <set>

#include "base/bytes.h"
#include "base/check.h"
#include "controller/coordinator/core.h"
#include "controller/diagnosis/fault_text.h"
#include "tests/fuzz/target.h"

namespace paceline::fuzz {

namespace {

using namespace coordinator;
using std::chrono::milliseconds;

constexpr int kMostInputs = 300;

// Bits: elastic and going on; servers; checks before the first step and shares by speed; one stands by;
// listens; an evaluator.
CoreConfig config_of(std::uint8_t bits) {
  CoreConfig config;
  config.job = "default/digits";
  config.link_key = std::string(32, 'k');
  config.training.set_global_batch_size(64);
  config.roles = {{Role::kChief, 1}, {Role::kWorker, 3, (bits & 8) != 0 ? 1 : 0}};
  config.form_timeout = config.start_timeout = std::chrono::seconds(10);
  if ((bits & 1) != 0) {
    config.elastic = true;
    config.on_member_lost = [](const api::Fault&, int) {
      return LossDecision{LossAction::kFormNextView, "go on"};
    };
  }
  if ((bits & 2) != 0) {
    config.roles[1].standby = 0;
    config.roles.push_back({Role::kServer, 2});
    v1::ParameterServerSpec& spec = *config.training.mutable_parameter_server();
    spec.set_synchronization(v1::ParameterServerSpec::ASYNCHRONOUS);
    spec.set_workers(4);
    spec.set_gradients_per_step(4);
    config.on_member_lost = loss_policy(config.training, {});
  } else if ((bits & 4) != 0) {
    config.rebalance = RebalanceRules{.lost_seconds = 0};
    config.preflight = PreflightRules{.excludes = true, .most = 2, .replaced = {Role::kWorker}};
  }
  if ((bits & 32) != 0) config.roles.push_back({Role::kEvaluator, 1});
  config.listens = (bits & 16) != 0;
  return config;
}

Role role_of(std::uint8_t byte) {
  return static_cast<Role>(byte % 4);
}

class World {
 public:
  explicit World(const CoreConfig& config) : core_(config, now_) {}

  // An input of what follows: its kind, its stream, how long after the one before (in 10 ms), and its bytes.
  void step(ByteReader& reader) {
    const std::uint8_t kind = reader.u8();
    const StreamId stream{static_cast<std::uint64_t>(1 + reader.u8() % 16)};
    now_ += milliseconds(10) * reader.u8();
    const std::size_t length = reader.u16();
    const auto bytes = reader.bytes(std::min(length, reader.remaining()));
    const int size = static_cast<int>(bytes.size());
    ByteReader more(bytes);
    switch (kind % 10) {
      case 0: {
        Attached in{stream, {}};
        // A stream has one Hello: its number is never used again.
        if (!in.hello.ParseFromArray(bytes.data(), size) || !open_.insert(stream.value).second) return;
        return feed(in);
      }
      case 1:
      case 2:
      case 3: {
        Received in{stream, {}};
        if (!open_.contains(stream.value) || !in.message.ParseFromArray(bytes.data(), size)) return;
        return feed(in);
      }
      case 4:
        return feed(StreamEnded{stream, std::string(text_of(bytes))});
      case 5: {
        PodFact fact{.role = role_of(more.u8()), .index = more.u8() % 4};
        fact.incarnation = more.u8() % 4;
        if (const std::uint8_t code = more.u8(); code < 128)
          fact.exit_code = code;
        else if (code < 160)
          fact.signal = code - 128;
        fact.pod = text_of(more.bytes(more.remaining()));
        return feed(fact);
      }
      case 6:
        return feed(Refused{std::string(text_of(bytes))});
      case 7: {
        Handover in;
        if (size > 0) in.to = Incarnation{role_of(more.u8()), more.u8() % 4, more.u8() % 4};
        return feed(in);
      }
      case 8:
        return size == 0 ? feed(Tick{}) : feed(Rebalance{});
      default:
        return size < 8 ? feed(Tick{}) : feed(Stop{std::string(text_of(bytes)), false});
    }
  }

  void feed(const coordinator::Input& input) {
    const bool early = std::holds_alternative<Tick>(input) && now_ < core_.due();
    const Effects effects = core_.step(input, now_);
    if (early)
      PL_CHECK(effects.send.empty() && effects.close.empty() && !effects.verdict,
               "a tick that is not due does nothing");
    std::set<std::uint64_t> closed;
    for (const Send& send : effects.send) {
      PL_CHECK(open_.contains(send.stream.value), "messages go to streams that there are");
      if (send.message.has_view()) check_view(send.message.view());
    }
    for (const StreamId& stream : effects.close)
      PL_CHECK(closed.insert(stream.value).second, "a stream is closed once");
    if (effects.verdict) (void)diagnosis::message_of(*effects.verdict);
    for (const api::Fault& lost : effects.lost) (void)diagnosis::message_of(lost);
    PL_CHECK(core_.report(now_).members.size() <= 16, "a report has the job's members");
  }

  bool is_over() const { return is_final(core_.state()); }

 private:
  void check_view(const v1::View& view) {
    PL_CHECK(view.generation() >= generation_, "generations rise");
    generation_ = view.generation();
    std::set<std::string> members;
    for (const v1::ViewMember& member : view.members())
      PL_CHECK(members.insert(member.member_id()).second, "a view has a member once");
    PL_CHECK(!members.empty(), "a view has members");
  }

  TimePoint now_{};
  CoordinatorCore core_;
  std::set<std::uint64_t> open_;  // streams that have said hello
  std::uint64_t generation_ = 0;
};

}  // namespace

// The first byte: which job. Then the inputs of its core.
int fuzz_coordinator_core(Input input) {
  [[maybe_unused]] static const auto words_about_utf8 = google::protobuf::SetLogHandler(nullptr);
  ByteReader reader(input);
  const CoreConfig config = config_of(reader.u8());
  PL_CHECK(validate(config).ok(), "a job that there can be");
  World world(config);
  for (int i = 0; i < kMostInputs && reader.remaining() > 0 && !world.is_over(); ++i) world.step(reader);
  return 0;
}

}  // namespace paceline::fuzz
