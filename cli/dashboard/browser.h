#pragma once

// Opens an address in the user's browser, if there is one: by xdg-open, of a desktop. The address holds a
// secret, and what programs are called with is everybody's to read; so the browser gets a file that only its
// user can read, which leads there.

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace paceline::cli {

// Whether a browser may be opened here: there is a desktop.
bool has_desktop();

// The page that leads to `address`. Pure.
std::string leading_page(const std::string& address);

// The file that leads to an address, which is removed with it.
class LeadingFile {
 public:
  // In `folder`, which is made. As errno_status().
  static absl::StatusOr<std::unique_ptr<LeadingFile>> write(const std::string& folder,
                                                            const std::string& address);
  ~LeadingFile();
  LeadingFile(const LeadingFile&) = delete;
  LeadingFile& operator=(const LeadingFile&) = delete;

  // Starts xdg-open, and does not wait for it. NOT_FOUND: there is none.
  absl::Status open_in_browser() const;
  const std::string& path() const { return path_; }

 private:
  explicit LeadingFile(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

}  // namespace paceline::cli
