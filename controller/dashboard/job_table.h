#pragma once

// All jobs that a dashboard knows, with the version at which each changed last: what a reader needs who knows
// an earlier version is a question about values, so that a slow reader costs no queue, and one that comes
// back goes on from its version. Versions grow from 1, which is that of no jobs.
//
// Bounds: one object and one row for each job; the newest kRemovals removals (a reader who knows less gets
// the whole list). Pure.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/cluster/kube/json.h"

namespace paceline::dashboard {

// Namespaces that may be seen; null: all.
using Namespaces = std::shared_ptr<const std::set<std::string>>;

// namespace/name
std::string key_of(std::string_view ns, std::string_view name);
std::string key_of(const kube::Json& object);

class JobTable {
 public:
  static constexpr std::size_t kRemovals = 4096;

  struct Job {
    std::string uid, row;                      // row: its JSON
    std::shared_ptr<const kube::Json> object;  // never null
    std::uint64_t changed = 0, row_changed = 0;
  };

  // Takes an object as it is now, with its row's JSON. Another uid under the same name is another job. False:
  // nothing is new.
  bool put(const kube::Json& object, std::string row);
  bool remove(const std::string& key);
  // Jobs that could not be read, for people.
  bool set_left_out(std::vector<std::string> left_out);

  std::uint64_t version() const { return version_; }
  std::size_t size() const { return jobs_.size(); }
  const Job* find(const std::string& key) const;
  const std::map<std::string, Job>& jobs() const { return jobs_; }

  // {"version","jobs","leftOut"}, of these namespaces; null: of all.
  std::string list_json(const Namespaces& namespaces = nullptr) const;
  // {"version","full","rows","removed"}, and "leftOut" where that is new: what is new for a reader who knows
  // `since`; 0: all.
  std::string delta_json(std::uint64_t since, const Namespaces& namespaces = nullptr) const;
  // Whether a reader who knows `since` would hear of anything.
  bool has_news(std::uint64_t since) const { return rows_changed_ > since; }
  // Likewise, a reader who sees these namespaces.
  bool has_news(std::uint64_t since, const Namespaces& namespaces) const;

 private:
  struct Removal {
    std::uint64_t version;
    std::string uid, ns;
  };

  void note_removal(const std::string& key, const std::string& uid);
  bool is_whole(std::uint64_t since) const { return since == 0 || since < forgotten_ || since > version_; }

  std::map<std::string, Job> jobs_;
  std::deque<Removal> removals_;
  std::uint64_t forgotten_ = 0;  // the newest version of a removal that is not kept
  std::uint64_t version_ = 1, rows_changed_ = 1, left_out_changed_ = 1;
  std::vector<std::string> left_out_;
};

}  // namespace paceline::dashboard
