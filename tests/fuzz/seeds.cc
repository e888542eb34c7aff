#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/text.h"
#include "controller/coordinator/core.h"
#include "controller/dashboard/series_record.h"
#include "runtime/checkpoint/safetensors_file.h"
#include "runtime/pserver/messages.h"
#include "runtime/pserver/row_messages.h"
#include "runtime/transport/frame.h"
#include "runtime/transport/handshake.h"
#include "runtime/transport/peer_watch.h"
#include "tests/fuzz/target.h"

namespace paceline::fuzz {

namespace {

using Seeds = std::vector<std::string>;

std::string text_from(Input bytes) {
  return std::string(text_of(bytes));
}

Seeds transport_frames() {
  std::array<std::byte, transport::kFrameHeaderBytes> frame;
  transport::encode({.generation = Generation{3}, .operation = 2, .call = 7, .sequence = 1, .length = 4096},
                    frame);
  const transport::Notice abort{transport::Notice::Type::kAbort,
                                {.blamed_rank = 1, .code = absl::StatusCode::kUnavailable, .text = "reset"}};
  return {text_from(frame), text_from(transport::encode(abort))};
}

template <typename Message>
std::string pserver_frame(pserver::FrameKind kind, const Message& message) {
  pserver::Buffer payload;
  pserver::encode(message, payload);
  std::array<std::byte, pserver::kFrameBytes> header;
  pserver::encode(
      {.kind = kind, .generation = Generation{3}, .rank = 1, .number = 1, .length = payload.size()}, header);
  return text_from(header) + text_from(payload);
}

Seeds pserver_frames() {
  using pserver::FrameKind;
  pserver::BeginMessage begin;
  begin.elements = 8;
  begin.decay = {0, 4};
  begin.optimizer = {"momentum"};
  pserver::LogEntry entry;
  entry.version = 1;
  entry.contributors = {{.worker = 0, .last = true}, {.worker = 1, .last = true, .aside = true}};
  pserver::TurnResult turn;
  turn.unit = 0;
  pserver::sparse::SavedRows rows;
  rows.ids = {1, 5};
  rows.last = {3, 4};
  rows.uses = rows.steps = {1, 2};
  rows.floats = {1, 2, 3, 4};
  return {pserver_frame(FrameKind::kJoin, pserver::JoinMessage{.elements = 8, .slice_bytes = 4096}),
          pserver_frame(FrameKind::kBegin, begin),
          pserver_frame(FrameKind::kCommit, pserver::CommitMessage{.loss_sum = 1, .samples = 4}),
          pserver_frame(FrameKind::kWish, pserver::Wishes{.save = true}),
          pserver_frame(FrameKind::kTurn, turn),
          pserver_frame(FrameKind::kWaiting, pserver::WaitingMessage{.rank = 1}),
          pserver_frame(FrameKind::kCopy, pserver::SnapshotInfo{}),
          pserver_frame(FrameKind::kNorm, 0.5),
          pserver_frame(FrameKind::kLog, entry),
          pserver_frame(FrameKind::kAbort, pserver::AbortMessage{.code = 14, .blamed = 1, .text = "reset"}),
          pserver_frame(FrameKind::kPushRows,
                        pserver::RowsMessage{{.table = 0, .count = 2}, {.table = 1, .count = 1}}),
          pserver_frame(FrameKind::kSavedRows, rows),
          pserver_frame(FrameKind::kTables, pserver::TablesMessage{{.rows = 2, .clock = 1}}),
          pserver_frame(FrameKind::kComing, pserver::ComingMessage{.made = 64})};
}

// Both peers with both their connections; each message as rendezvous.cc reads it.
Seeds meetings() {
  std::string all, wrong;
  for (const std::uint32_t rank : {1u, 2u}) {
    for (const std::uint8_t channel : {0, 1}) {
      transport::Message hello{
          .channel = channel, .channels = 2, .generation = Generation{5}, .rank = rank, .world = 3};
      all += '\x03' + text_from(transport::encode(hello));
      hello.type = transport::MessageType::kProof;
      all += '\x0e' + text_from(transport::encode(hello));
      hello.generation = Generation{6};
      wrong += '\x01' + text_from(transport::encode(hello));
      hello.type = transport::MessageType::kHello;
      wrong += '\x01' + text_from(transport::encode(hello));
    }
  }
  return {all, wrong};
}

Seeds safetensors() {
  const std::vector<float> values = {1, 2, 3, 4};
  const std::vector<checkpoint::TensorView> tensors = {
      checkpoint::tensor_view<float>("weights", DType::kF32, {2, 2}, values),
      checkpoint::tensor_view<float>("momentum", DType::kF32, {4}, values)};
  std::string header;
  const auto pieces = checkpoint::pieces_of(tensors, {{"step", "1"}}, header);
  std::string file;
  for (const auto& piece : *pieces) file += text_from(piece);
  // The same as the number of its data's bytes, doubled, and the JSON.
  ByteWriter data;
  data.u64(2 * 2 * sizeof(float) * values.size());
  return {file, text_from(data.data()) + header.substr(checkpoint::kLengthBytes)};
}

Seeds series() {
  dashboard::JobSeries series;
  series.set_view({"worker-0", "worker-1"});
  for (Step step = 1; step <= 4; ++step) {
    series.add(dashboard::StepPoint{.step = step, .loss = 1, .learning_rate = 0.1, .seconds = 1});
    for (const char* member : {"worker-0", "worker-1"})
      series.add(dashboard::MemberPoint{.member = member, .step = step, .ms = {1, 2, 3, 4, 5, 0, 15}});
  }
  series.add(dashboard::EvaluationPoint{.step = 4, .loss = 1, .accuracy = 0.5, .seconds = 4, .auc = 0.5});
  return {dashboard::pack_series(series)};
}

// Inputs of a job's core, as coordinator_core.cc reads them.
class Job {
 public:
  explicit Job(std::uint8_t bits) { writer_.u8(bits); }

  void input(std::uint8_t kind, int stream, std::string_view bytes, std::uint8_t after = 5) {
    writer_.u8(kind);
    writer_.u8(static_cast<std::uint8_t>(stream - 1));
    writer_.u8(after);
    writer_.u16(static_cast<std::uint16_t>(bytes.size()));
    writer_.bytes(std::as_bytes(std::span(bytes)));
  }
  void hello(int stream, v1::RoleKind role, std::uint32_t index) {
    v1::Hello hello;
    hello.set_protocol_version(coordinator::kProtocolVersion);
    hello.set_member_id(str_cat("member-", stream));
    hello.set_job("default/digits");
    hello.set_role(role);
    hello.set_index(index);
    hello.set_pod(str_cat("pod-", stream));
    hello.set_host("host");
    hello.set_catches_up(true);
    hello.set_answers_preflight(true);
    input(0, stream, hello.SerializeAsString());
  }
  void say(int stream, const v1::MemberMessage& message) { input(1, stream, message.SerializeAsString()); }
  void beat(int stream, std::int64_t step, v1::MemberPhase phase) {
    v1::MemberMessage message;
    v1::Heartbeat& beat = *message.mutable_heartbeat();
    beat.set_generation(1);
    beat.set_number(static_cast<std::uint64_t>(step) + 1);
    beat.set_step(step);
    beat.set_steps(1);
    beat.set_phase(phase);
    beat.set_total_steps(10);
    beat.set_weights_hash(7);
    beat.set_weights_hash_step(step);
    beat.add_step_times()->set_compute_ns(1'000'000);
    beat.add_step_time_steps(step);
    beat.set_part(v1::PART_COMPUTE);
    if (stream == 1) {
      beat.add_records()->set_step(step);
      beat.add_evaluations()->set_step(step);
    }
    beat.mutable_kernel()->set_cpu(1);
    beat.mutable_gpu()->set_name("GPU");
    beat.mutable_staleness()->add_histogram(1);
    beat.mutable_links()->add_links()->set_rank(1);
    say(stream, message);
  }
  std::string text() const { return text_from(writer_.data()); }

 private:
  ByteWriter writer_;
};

// A chief and three workers, or servers too, that train, lose one, and end.
std::string job(std::uint8_t bits) {
  Job job(bits);
  job.hello(1, v1::ROLE_CHIEF, 0);
  for (int i = 0; i < 3; ++i) job.hello(2 + i, v1::ROLE_WORKER, static_cast<std::uint32_t>(i));
  int members = 4;
  if ((bits & 2) != 0)
    for (int i = 0; i < 2; ++i) job.hello(++members, v1::ROLE_PS, static_cast<std::uint32_t>(i));
  if ((bits & 32) != 0) job.hello(++members, v1::ROLE_EVALUATOR, 0);
  v1::MemberMessage message;
  if ((bits & 4) != 0) {
    for (std::uint64_t number = 1; number <= 3; ++number) {
      for (int stream = 1; stream <= members; ++stream) {
        message.mutable_preflight()->set_number(number);
        message.mutable_preflight()->set_compute_seconds(stream == 2 ? 5 : 1);
        message.mutable_preflight()->set_link_seconds(1);
        message.mutable_preflight()->mutable_address()->set_local_socket("x");
        job.say(stream, message);
      }
    }
  }
  for (std::int64_t step = 0; step < 3; ++step) {
    for (int stream = 1; stream <= members; ++stream)
      job.beat(stream, step, step == 0 ? v1::WAITING : v1::TRAINING);
  }
  message.mutable_peer_fault()->set_generation(1);
  message.mutable_peer_fault()->set_peer_member_id("member-3");
  job.say(2, message);
  job.input(4, 3, "reset");
  job.input(5, 1, std::string_view("\1\1\0\211pod-3", 9));
  job.input(8, 1, "", 100);
  job.hello(10, v1::ROLE_WORKER, 1);
  message.mutable_caught_up()->set_generation(1);
  job.say(10, message);
  message.mutable_checkpoint()->set_path("/checkpoints/step-000000002");
  job.say(1, message);
  message.mutable_leaving()->set_outcome(v1::Leaving::FINISHED);
  job.say(1, message);
  job.input(9, 1, "stop it, please");
  return job.text();
}

}  // namespace

std::vector<std::string> binary_seeds(std::string_view target) {
  if (target == "transport_frame") return transport_frames();
  if (target == "pserver_frame") return pserver_frames();
  if (target == "rendezvous") return meetings();
  if (target == "safetensors") return safetensors();
  if (target == "series_record") return series();
  if (target == "coordinator_core") return {job(0), job(1), job(2 + 32), job(1 + 4), job(1 + 8), job(16)};
  return {};
}

}  // namespace paceline::fuzz
