#pragma once

// A folder of a test's own under the system's temporary folder, removed with all that is in it at the end.
// One thread.

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/check.h"

namespace paceline {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "paceline-test-XXXXXX").string();
    PL_CHECK(::mkdtemp(name.data()) != nullptr, "tests need a writable temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace paceline
