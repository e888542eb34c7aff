#include "base/data_path.h"

#include <filesystem>
#include <system_error>

#include "base/text.h"

namespace paceline {

absl::Status check_no_folder(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      str_cat(path, " is a folder; inputs and labels take files: name each of them"));
}

}  // namespace paceline
