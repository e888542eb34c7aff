#include "cli/run/metrics_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "base/text.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kMaxBufferedBytes = 64 << 10;

// Where the last whole line ends.
absl::StatusOr<off_t> end_of_lines(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return errno_status(errno, str_cat("stat ", path));
  char chunk[4096];
  off_t end = info.st_size;
  while (end > 0) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(sizeof(chunk)));
    const ssize_t n = ::pread(fd, chunk, static_cast<std::size_t>(end - begin), begin);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status(errno, str_cat("read ", path));
    const std::size_t newline = std::string_view(chunk, static_cast<std::size_t>(n)).rfind('\n');
    if (newline != std::string_view::npos) return begin + static_cast<off_t>(newline) + 1;
    end = begin;
  }
  return 0;
}

double in_seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}
double millis(Duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

// JSON has no NaN and no infinity.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

// Calls `use(i)` for at most `most` of `count` indices, evenly spread, the last among them.
template <typename Use>
void thinned(std::size_t count, std::size_t most, Use use) {
  if (count <= most) {
    for (std::size_t i = 0; i < count; ++i) use(i);
    return;
  }
  for (std::size_t k = 1; k <= most; ++k) use(k * count / most - 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsFile>> MetricsFile::open(const std::string& path,
                                                               double seconds_before) {
  PL_ASSIGN_OR_RETURN(RegularFile file, open_regular_file(path, O_RDWR | O_APPEND | O_CREAT));
  PL_ASSIGN_OR_RETURN(const off_t end, end_of_lines(file.fd.get(), path));
  if (::ftruncate(file.fd.get(), end) != 0) return errno_status(errno, str_cat("cut ", path));
  return std::unique_ptr<MetricsFile>(new MetricsFile(path, std::move(file.fd), seconds_before));
}

MetricsFile::~MetricsFile() {
  flush();
}

void MetricsFile::write(std::string_view line) {
  if (!status_.ok()) return;
  lines_ += line;
  if (lines_.size() >= kMaxBufferedBytes) flush();
}

void MetricsFile::steps(std::span<const coordinator::StepRecord> records) {
  thinned(records.size(), kMaxStepsPerBatch, [&](std::size_t i) {
    const auto& r = records[i];
    const std::string line = str_cat(R"({"type":"step","step":)", r.step, R"(,"loss":)", number(r.loss),
                                     R"(,"learningRate":)", number(r.learning_rate), R"(,"timeSeconds":)",
                                     number(seconds_before_ + in_seconds(r.since_start)), "}\n");
    write(line);
  });
}

void MetricsFile::view(const coordinator::ViewRecord& view) {
  std::string names;
  for (const std::string& member : view.members) names += str_cat(names.empty() ? "\"" : ",\"", member, "\"");
  view_ = str_cat(R"({"type":"view","generation":)", view.generation.value, R"(,"members":[)", names, "]}\n");
}

void MetricsFile::member_steps(const coordinator::MemberSteps& m) {
  if (!m.steps.empty()) write(std::exchange(view_, {}));
  const std::string member = str_cat(role_name(m.role), "-", m.index);
  thinned(std::min(m.steps.size(), m.times.size()), kMaxMemberStepsPerBatch, [&](std::size_t i) {
    const auto& t = m.times[i];
    char line[512];
    const int length = std::snprintf(
        line, sizeof(line),
        R"({"type":"memberStep","member":"%s","step":%lld,"inputMs":%.4f,"computeMs":%.4f,"waitMs":%.4f,)"
        R"("transferMs":%.4f,"updateMs":%.4f,"checkpointMs":%.4f,"stepMs":%.4f,"leftOutMs":%.4f})"
        "\n",
        member.c_str(), static_cast<long long>(m.steps[i]), millis(t.input), millis(t.compute),
        millis(t.wait), millis(t.transfer), millis(t.update), millis(t.checkpoint), millis(t.step),
        millis(t.left_out));
    write(std::string_view(line, static_cast<std::size_t>(length)));
  });
}

void MetricsFile::evaluation(const coordinator::EvaluationRecord& r) {
  const std::string line =
      str_cat(R"({"type":"evaluation","step":)", r.step, R"(,"loss":)", number(r.loss), R"(,"accuracy":)",
              number(r.accuracy), r.auc ? str_cat(R"(,"auc":)", number(*r.auc)) : std::string(),
              r.observer.empty() ? std::string() : str_cat(R"(,"evaluator":")", r.observer, "\""),
              R"(,"timeSeconds":)", number(seconds_before_ + in_seconds(r.since_start)), "}\n");
  write(line);
}

void MetricsFile::flush() {
  std::string_view rest = lines_;
  while (status_.ok() && !rest.empty()) {
    const ssize_t n = ::write(file_.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      status_ = errno_status(errno, str_cat("write ", path_, " (no more metrics are kept)"));
    } else {
      rest.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  lines_.clear();
}

}  // namespace paceline::cli
