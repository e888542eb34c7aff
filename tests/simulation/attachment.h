#pragma once

// A member's side of Attach, as runtime/member/membership_thread.cc and membership.cc have it, with what of
// that is without threads: the board, heartbeats and reports are theirs. Whoever owns it hears of all that
// changes.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "runtime/member/environment.h"
#include "runtime/member/outbox.h"
#include "runtime/member/progress.h"
#include "tests/simulation/network.h"

namespace paceline::simulation {

class Attachment {
 public:
  // Opens a stream to where this address leads: empty: where the job's coordinator is said to be. Null:
  // nobody listens there.
  using Open = std::function<std::shared_ptr<Link>(const std::string& leader)>;

  Attachment(member::Environment environment, Process& process, const Clock& clock, Dice& dice, Open open,
             std::function<void()> on_change);
  ~Attachment() { drop(); }

  void start() { pump(); }
  // The process is gone, and its streams with it.
  void drop() {
    if (link_) link_->drop();
  }

  const std::string& member_id() const { return member_id_; }
  bool welcomed() const { return welcomed_; }
  const v1::Welcome& welcome() const { return welcome_; }
  const v1::View& view() const { return view_; }
  Host viewed_by() const { return viewed_by_; }
  // Somebody gave it another view of the generation that it holds.
  bool is_contradicted() const { return contradicted_; }
  std::uint64_t draining() const { return draining_; }
  const absl::Status& status() const { return status_; }
  bool is_to_save() const { return to_save_; }
  member::Progress& progress() { return progress_; }

  void report_peer_fault(std::uint64_t generation, Step step, const std::string& peer,
                         const std::string& why);
  void report_checkpoint(const v1::CheckpointResult& result);
  // `told`: whether the coordinator has taken it.
  void leave(v1::Leaving leaving, std::function<void(bool told)> done);

 private:
  enum class Line : std::uint8_t { kDown, kOpening, kUp };

  void pump();
  void reconnect(TimePoint now);
  void send_reports();
  void send_heartbeat(TimePoint now);
  v1::MemberMessage hello() const;
  void on_message(const v1::CoordinatorMessage& message);
  void catch_up(const v1::View& group);
  void check(const v1::Preflight& word);
  void end(absl::Status status);
  void try_to_leave();
  void over(bool told);

  const member::Environment environment_;
  const std::string member_id_;
  Process& process_;
  const Clock& clock_;
  Dice& dice_;
  const Open open_;
  const std::function<void()> on_change_;

  std::shared_ptr<Link> link_;
  Line line_ = Line::kDown;
  bool stream_ended_ = false, welcomed_ = false, to_save_ = false;
  v1::Welcome welcome_;
  v1::View view_;
  Host viewed_by_ = -1;
  bool contradicted_ = false;
  std::uint64_t draining_ = 0, taken_ = 0;
  absl::Status status_;
  std::string leader_, told_leader_;
  member::Reports reports_;
  member::Progress progress_;
  member::Heartbeats heartbeats_{progress_};
  Duration interval_ = std::chrono::milliseconds(200), reattach_limit_ = std::chrono::seconds(2), backoff_{};
  std::optional<TimePoint> down_since_;
  TimePoint next_try_{}, next_beat_{};
  std::uint64_t pumps_ = 0;  // the newest one's timer counts
  std::optional<v1::Leaving> leaving_;
  bool goodbye_sent_ = false;
  std::function<void(bool)> left_;
};

}  // namespace paceline::simulation
