#include "base/same_files.h"

#include <sys/stat.h>

#include <map>
#include <optional>
#include <utility>

#include "base/text.h"

namespace paceline {

namespace {

using FileId = std::pair<dev_t, ino_t>;

std::optional<FileId> id_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return FileId(found.st_dev, found.st_ino);
}

}  // namespace

std::string warn_of_same_files(const std::vector<std::string>& train,
                               const std::vector<std::string>& held_out, bool cut) {
  std::map<FileId, std::string> trained;
  for (const std::string& path : train) {
    const auto id = id_of(path);
    if (!id || trained.emplace(*id, path).second || !cut) continue;
    return str_cat("data.train has the file ", path,
                   " more than once: samples that testFraction holds out are trained on, too");
  }
  for (const std::string& path : held_out) {
    const auto id = id_of(path);
    const auto found = id ? trained.find(*id) : trained.end();
    if (found == trained.end()) continue;
    return str_cat("data.test has the file ", path, ", which data.train has, too",
                   found->second == path ? "" : str_cat(" (", found->second, ")"),
                   ": what is held out is trained on");
  }
  return "";
}

}  // namespace paceline
