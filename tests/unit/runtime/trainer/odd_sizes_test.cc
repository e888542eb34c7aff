#include "runtime/trainer/odd_sizes.h"

#include <gtest/gtest.h>

namespace paceline::trainer {
namespace {

v1::TrainingSpec gpt(std::int64_t vocabulary, std::int64_t width, v1::Precision precision) {
  v1::TrainingSpec spec;
  spec.set_precision(precision);
  spec.mutable_model()->mutable_gpt()->set_vocabulary_size(vocabulary);
  spec.mutable_model()->mutable_gpt()->set_width(width);
  return spec;
}

constexpr char kSlow[] = ": products in bf16 are slower on a GPU with sizes that are no multiples of 8";

TEST(OddSizes, AreNamedWithTheNextThatIsEven) {
  EXPECT_EQ(odd_sizes_warning(gpt(50257, 768, v1::PRECISION_BF16)),
            std::string("training.model.vocabularySize is 50257 (the next is 50264)") + kSlow);
  EXPECT_EQ(odd_sizes_warning(gpt(255, 20, v1::PRECISION_BF16)),
            std::string("training.model.vocabularySize is 255 (the next is 256), "
                        "training.model.width is 20 (the next is 24)") +
                kSlow);
  v1::TrainingSpec mlp, cnn, wide;
  for (v1::TrainingSpec* spec : {&mlp, &cnn, &wide}) spec->set_precision(v1::PRECISION_BF16);
  for (const int size : {64, 100}) {
    mlp.mutable_model()->mutable_mlp()->add_hidden(size);
    cnn.mutable_model()->mutable_cnn()->add_hidden(size);
    wide.mutable_model()->mutable_wide_and_deep()->add_hidden(size);
  }
  mlp.mutable_model()->mutable_mlp()->set_classes(10);
  for (const v1::TrainingSpec& spec : {mlp, cnn, wide})
    EXPECT_EQ(odd_sizes_warning(spec),
              std::string("training.model.hidden[1] is 100 (the next is 104)") + kSlow);
}

TEST(OddSizes, NothingIsSaidOfOthersAndOfFp32) {
  EXPECT_EQ(odd_sizes_warning(gpt(50304, 768, v1::PRECISION_BF16)), "");
  EXPECT_EQ(odd_sizes_warning(gpt(50257, 768, v1::PRECISION_FP32)), "");
  EXPECT_EQ(odd_sizes_warning(v1::TrainingSpec()), "");
}

}  // namespace
}  // namespace paceline::trainer
