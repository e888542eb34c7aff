#include "controller/cluster/local/oom_kills.h"

#include <sstream>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace paceline::cluster {

namespace {

constexpr char kOfTheMachine[] = "/proc/vmstat";
constexpr std::size_t kMostBytes = 1 << 16;

// The group's path in a line of /proc/self/cgroup: "0::/user.slice", "4:memory:/docker".
std::string path_of(const std::string& line) {
  const std::size_t colon = line.find(':', line.find(':') + 1);
  return colon == std::string::npos ? "" : line.substr(colon + 1);
}

}  // namespace

std::string oom_counter(const std::string& cgroups) {
  std::vector<std::string> candidates;
  std::istringstream lines(cgroups);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::"))
      candidates.push_back(str_cat("/sys/fs/cgroup", path_of(line), "/memory.events"));
    if (line.find(":memory:") != std::string::npos)
      candidates.push_back(str_cat("/sys/fs/cgroup/memory", path_of(line), "/memory.oom_control"));
  }
  for (const std::string& each : candidates) {
    const auto content = read_file(each, kMostBytes);
    if (content.ok() && content->find("oom_kill ") != std::string::npos) return each;
  }
  return kOfTheMachine;
}

bool OomKills::take() {
  if (count() <= explained_) return false;
  ++explained_;
  return true;
}

std::int64_t OomKills::count() const {
  const auto content = read_file(counter_, kMostBytes);
  if (!content.ok()) return explained_;
  std::istringstream words(*content);
  std::string name;
  for (std::int64_t number = 0; words >> name >> number;) {
    if (name == "oom_kill") return number;
  }
  return explained_;
}

}  // namespace paceline::cluster
