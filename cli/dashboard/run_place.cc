#include "cli/dashboard/run_place.h"

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ostream>

#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands/run_source.h"
#include "controller/api/parse.h"

namespace paceline::cli {

using kube::Json;

namespace {

// A source that is asked by a dashboard has nobody to talk to.
struct Nowhere {
  std::ostream nowhere{nullptr};
};
class QuietRunSource final : private Nowhere, public RunSource {
 public:
  QuietRunSource(const RunStore& store, const Clock& clock) : RunSource(store, clock, nowhere) {}
};

std::string user_name() {
  std::array<char, 4096> room;
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::getuid(), &entry, room.data(), room.size(), &found) == 0 && found != nullptr)
    return entry.pw_name;
  return str_cat("uid ", ::getuid());
}

}  // namespace

RunPlace::RunPlace(RunStore store, const Clock& clock)
    : store_(std::move(store)), clock_(clock), user_(user_name()) {}

std::unique_ptr<jobs::JobSource> RunPlace::source() {
  return std::make_unique<QuietRunSource>(store_, clock_);
}

std::string RunPlace::folder_of(const Json& object) const {
  return str_cat(store_.state_folder(), "/runs/", kube::text_at(object, {"metadata", "name"}));
}

absl::StatusOr<std::string> RunPlace::yaml(const Json& object) {
  return read_regular_file(folder_of(object) + "/job.yaml", api::kMaxFileBytes);
}

std::shared_ptr<RunPlace::Tail> RunPlace::tail_of(const Json& object) {
  const std::string folder = folder_of(object), uid = kube::text_at(object, {"metadata", "uid"});
  auto tails = tails_.lock();
  auto found = std::ranges::find(*tails, folder, [](const auto& tail) { return tail->folder; });
  if (found == tails->end()) found = tails->insert(tails->begin(), std::make_shared<Tail>(folder, uid));
  // A deleted run's file may have left its inode to the file of a new run of that name.
  if ((*found)->uid != uid) *found = std::make_shared<Tail>(folder, uid);
  tails->splice(tails->begin(), *tails, found);
  if (tails->size() > kMostTails) tails->pop_back();
  return tails->front();
}

absl::Status RunPlace::use_series(const Json& object, std::size_t most_bytes,
                                  const std::function<void(const dashboard::JobSeries&)>& use) {
  const std::shared_ptr<Tail> tail = tail_of(object);
  const std::scoped_lock busy(tail->busy);
  PL_RETURN_IF_ERROR(tail->metrics.read(most_bytes).status());
  use(tail->metrics.series());
  return absl::OkStatus();
}

// One write of a whole line, as the run's own process makes them.
absl::Status RunPlace::record(const Json& object, bool warning, std::string_view reason,
                              std::string_view message) {
  const auto file = open_regular_file(folder_of(object) + "/events.jsonl", O_WRONLY | O_APPEND);
  if (absl::IsNotFound(file.status())) return absl::OkStatus();  // nothing has happened yet, or it goes
  PL_RETURN_IF_ERROR(file.status());
  const std::string line = kube::dump(Json{{"time", format_wall_time(clock_.wall_now())},
                                           {"type", warning ? "Warning" : "Normal"},
                                           {"reason", reason},
                                           {"message", message}}) +
                           "\n";
  if (::write(file->fd.get(), line.data(), line.size()) < 0) return errno_status(errno, "write events.jsonl");
  return absl::OkStatus();
}

}  // namespace paceline::cli
