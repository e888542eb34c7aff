#include "controller/dashboard/board.h"

#include <algorithm>
#include <functional>

#include "base/text.h"

namespace paceline::dashboard {

using kube::Json;

void Board::apply(const Changes& changes) {
  std::vector<std::string> rows;
  for (const Json& object : changes.objects) rows.push_back(kube::dump(job_row(object, clock_.wall_now())));
  bool news = false;
  {
    auto seen = seen_.lock();
    for (const std::string& key : changes.removed) news |= seen->table.remove(key);
    for (std::size_t i = 0; i < rows.size(); ++i)
      news |= seen->table.put(changes.objects[i], std::move(rows[i]));
    if (changes.left_out) news |= seen->table.set_left_out(*changes.left_out);
  }
  if (news) tell();
}

void Board::note_series(const std::string& key, const Series& series) {
  {
    auto seen = seen_.lock();
    if (!seen->looks.contains(key) || std::exchange(seen->series[key], series) == series) return;
  }
  tell();
}

void Board::tell() const {
  const std::function<void()> on_news = seen_.lock()->on_news;
  if (on_news) on_news();
}

void Board::look(const std::string& key) {
  const TimePoint now = clock_.now();
  auto seen = seen_.lock();
  seen->looks[key] = now;
  if (seen->looks.size() <= kLooks) return;
  const auto oldest = std::ranges::min_element(seen->looks, {}, [](const auto& each) { return each.second; });
  seen->series.erase(oldest->first);
  seen->looks.erase(oldest);
}

std::vector<std::string> Board::looked_at() const {
  const TimePoint now = clock_.now();
  std::vector<std::pair<TimePoint, std::string>> looks;
  auto seen = seen_.lock();
  for (auto each = seen->looks.begin(); each != seen->looks.end();) {
    if (now - each->second <= kLook) {
      looks.emplace_back(each->second, each->first);
      ++each;
    } else {
      seen->series.erase(each->first);
      each = seen->looks.erase(each);
    }
  }
  std::ranges::sort(looks, std::greater());
  std::vector<std::string> keys;
  for (auto& [at, key] : looks) keys.push_back(std::move(key));
  return keys;
}

std::string Board::list_json(const Namespaces& namespaces) const {
  return seen_.lock()->table.list_json(namespaces);
}

std::set<std::string> Board::namespaces() const {
  std::set<std::string> found;
  auto seen = seen_.lock();
  for (const auto& [key, job] : seen->table.jobs()) found.insert(key.substr(0, key.find('/')));
  return found;
}

std::shared_ptr<const Json> Board::object(const std::string& key) const {
  auto seen = seen_.lock();
  const JobTable::Job* const job = seen->table.find(key);
  return job == nullptr ? nullptr : job->object;
}

// Two readers who ask for it at the same time both make it.
std::shared_ptr<const std::string> Board::text_of(const std::string& key, const JobTable::Job& job,
                                                  const Rights& rights) const {
  {
    auto seen = seen_.lock();
    const auto found = seen->job_texts.find({key, rights});
    if (found != seen->job_texts.end() && found->second.changed == job.changed) return found->second.json;
  }
  auto json = std::make_shared<const std::string>(str_cat(
      "{\"version\":\"", job.changed, "\",\"row\":", job.row,
      ",\"actions\":", kube::dump(actions_json(*job.object, rights, advice_.why_not)),
      ",\"keepsCheckpoints\":", keeps_checkpoints(*job.object) ? "true" : "false",
      ",\"hints\":", kube::dump(advice_.hints(*job.object)), ",\"object\":", kube::dump(*job.object), "}"));
  auto seen = seen_.lock();
  if (seen->job_texts.size() >= kTexts) seen->job_texts.clear();
  seen->job_texts[{key, rights}] = {job.changed, json};
  return json;
}

std::shared_ptr<const std::string> Board::job_json(const std::string& key, const Rights& rights) const {
  std::optional<JobTable::Job> job;
  {
    auto seen = seen_.lock();
    if (const JobTable::Job* const found = seen->table.find(key); found != nullptr) job = *found;
  }
  return job ? text_of(key, *job, rights) : nullptr;
}

Board::Text Board::jobs_since(std::uint64_t since, const Namespaces& namespaces) const {
  auto seen = seen_.lock();
  const std::uint64_t version = seen->table.version();
  if (since != 0 && since <= version && !seen->table.has_news(since)) return {version, nullptr};
  if (namespaces != nullptr) {
    if (since != 0 && !seen->table.has_news(since, namespaces)) return {version, nullptr};
    return {version, std::make_shared<const std::string>(seen->table.delta_json(since, namespaces))};
  }
  if (seen->delta == nullptr || seen->delta_since != since || seen->delta_version != version) {
    seen->delta = std::make_shared<const std::string>(seen->table.delta_json(since));
    seen->delta_since = since;
    seen->delta_version = version;
  }
  return {version, seen->delta};
}

Board::Text Board::job_since(const std::string& key, std::uint64_t since, const Rights& rights) const {
  std::uint64_t version = 0;
  std::optional<JobTable::Job> job;
  {
    auto seen = seen_.lock();
    version = seen->table.version();
    const JobTable::Job* const found = seen->table.find(key);
    if (found != nullptr && found->changed <= since && since <= version) return {version, nullptr};
    if (found != nullptr) job = *found;
  }
  if (job) return {version, text_of(key, *job, rights)};
  return {version,
          std::make_shared<const std::string>(str_cat("{\"version\":\"", version, "\",\"removed\":true}")),
          true};
}

Board::Series Board::series_of(const std::string& key) const {
  auto seen = seen_.lock();
  const auto found = seen->series.find(key);
  return found == seen->series.end() ? Series() : found->second;
}

}  // namespace paceline::dashboard
