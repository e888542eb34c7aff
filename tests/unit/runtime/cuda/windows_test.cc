#include "runtime/cuda/windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/unit/runtime/cuda/values.h"

namespace paceline::cuda {
namespace {

WindowShape shape_of(std::uint32_t images, std::uint32_t channels, std::uint32_t height, std::uint32_t width,
                     std::uint32_t window, std::uint32_t stride, std::uint32_t padding) {
  return {.images = images,
          .channels = channels,
          .height = height,
          .width = width,
          .out_height = (height + 2 * padding - window) / stride + 1,
          .out_width = (width + 2 * padding - window) / stride + 1,
          .window_height = window,
          .window_width = window,
          .stride = stride,
          .padding = padding};
}

const WindowShape kConvolutions[] = {shape_of(2, 3, 5, 7, 3, 1, 1), shape_of(1, 1, 4, 4, 1, 1, 0),
                                     shape_of(3, 2, 9, 5, 5, 2, 2), shape_of(2, 4, 6, 6, 2, 3, 1),
                                     shape_of(1, 2, 3, 3, 3, 1, 0)};
const WindowShape kPools[] = {shape_of(2, 3, 6, 8, 2, 2, 0), shape_of(1, 2, 7, 7, 3, 2, 0),
                              shape_of(2, 1, 5, 6, 3, 1, 0), shape_of(1, 3, 7, 5, 2, 3, 0)};

// each(position, element of the patch, element of the images or none)
template <typename Each>
void for_windows(const WindowShape& s, Each each) {
  for (std::uint32_t position = 0; position < s.positions(); ++position) {
    const std::uint32_t image = position / (s.out_height * s.out_width),
                        row = position / s.out_width % s.out_height, column = position % s.out_width;
    for (std::uint32_t e = 0; e < s.patch(); ++e) {
      const std::uint32_t channel = e / (s.window_height * s.window_width);
      const int y = static_cast<int>(row * s.stride + e / s.window_width % s.window_height) -
                    static_cast<int>(s.padding),
                x = static_cast<int>(column * s.stride + e % s.window_width) - static_cast<int>(s.padding);
      const bool inside = y >= 0 && x >= 0 && y < static_cast<int>(s.height) && x < static_cast<int>(s.width);
      std::optional<std::size_t> from;
      if (inside) {
        from =
            ((image * s.channels + channel) * std::size_t{s.height} + static_cast<std::size_t>(y)) * s.width +
            static_cast<std::size_t>(x);
      }
      each(position, e, from);
    }
  }
}

template <typename T>
class WindowsTest : public KernelsTest<Windows> {
 protected:
  Rng rng_{22, 0};
};

using Types = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(WindowsTest, Types);

TYPED_TEST(WindowsTest, ColumnsAreTheWindowsElements) {
  using T = TypeParam;
  this->in_both_orders([&] {
    for (const WindowShape& s : kConvolutions) {
      const auto x = random_values<T>(this->rng_, s.inputs());
      Doubles expected(std::size_t{s.positions()} * s.patch());
      for_windows(s, [&](std::uint32_t position, std::uint32_t e, std::optional<std::size_t> from) {
        expected[std::size_t{position} * s.patch() + e] = from ? static_cast<float>(x[*from]) : 0;
      });
      const auto images = this->upload(x), columns = this->template array<T>(expected.size());
      ASSERT_TRUE(this->kernels_
                      ->columns(*this->stream_, kTypeOf<T>,
                                {.x = images.data(), .columns = columns.data(), .shape = s})
                      .ok());
      EXPECT_EQ(doubles(this->download(columns)), expected);
    }
  });
}

TYPED_TEST(WindowsTest, ImagesAreTheSumsOfTheirColumns) {
  using T = TypeParam;
  this->in_both_orders([&] {
    for (const WindowShape& s : kConvolutions) {
      const auto columns = random_values<T>(this->rng_, std::size_t{s.positions()} * s.patch());
      Doubles expected(s.inputs());
      for_windows(s, [&](std::uint32_t position, std::uint32_t e, std::optional<std::size_t> to) {
        if (to) expected[*to] += static_cast<float>(columns[std::size_t{position} * s.patch() + e]);
      });
      const auto from = this->upload(columns), dx = this->template array<T>(expected.size());
      ASSERT_TRUE(
          this->kernels_
              ->images(*this->stream_, kTypeOf<T>, {.columns = from.data(), .dx = dx.data(), .shape = s})
              .ok());
      expect_near(this->download(dx), expected, 1e-6);
    }
  });
}

// Few values, so that many are equal: the first of them has the gradient.
TYPED_TEST(WindowsTest, PoolsAndTheirGradients) {
  using T = TypeParam;
  this->in_both_orders([&] {
    for (const WindowShape& s : kPools) {
      for (const bool relu : {false, true}) {
        std::vector<T> x;
        for (std::size_t i = 0; i < s.inputs(); ++i)
          x.emplace_back(T(static_cast<float>(this->rng_.below(7)) - 4));
        const std::size_t n = std::size_t{s.positions()} * s.channels;
        const auto dy = random_values<T>(this->rng_, n);
        Doubles y(n), dx(s.inputs());
        for (std::size_t i = 0; i < n; ++i) {
          const std::size_t plane = i / (s.out_height * s.out_width), row = i / s.out_width % s.out_height,
                            column = i % s.out_width;
          std::size_t best = (plane * s.height + row * s.stride) * s.width + column * s.stride;
          const std::size_t corner = best;
          for (std::size_t k = 0; k < std::size_t{s.window_height} * s.window_width; ++k) {
            const std::size_t at = corner + k / s.window_width * s.width + k % s.window_width;
            if (static_cast<float>(x[at]) > static_cast<float>(x[best])) best = at;
          }
          y[i] = relu ? std::max(static_cast<float>(x[best]), 0.0F) : static_cast<float>(x[best]);
          if (!relu || y[i] > 0) dx[best] += static_cast<float>(dy[i]);
        }
        const auto in = this->upload(x), gradient = this->upload(dy), result = this->template array<T>(n),
                   back = this->template array<T>(s.inputs());
        const auto places = this->template array<std::uint8_t>(n);
        ASSERT_TRUE(
            this->kernels_
                ->max_pool(
                    *this->stream_, kTypeOf<T>,
                    {.x = in.data(), .y = result.data(), .places = places.data(), .shape = s, .relu = relu})
                .ok());
        ASSERT_TRUE(this->kernels_
                        ->max_pool_backward(*this->stream_, kTypeOf<T>,
                                            {.dy = gradient.data(),
                                             .places = places.data(),
                                             .y = relu ? result.data() : nullptr,
                                             .dx = back.data(),
                                             .shape = s})
                        .ok());
        EXPECT_EQ(doubles(this->download(result)), y);
        expect_near(this->download(back), dx, 1e-6);
      }
    }
  });
}

TYPED_TEST(WindowsTest, ANanIsHighest) {
  using T = TypeParam;
  const std::vector<T> x = {T(1), T(kNan), T(5), T(2)};
  const WindowShape s = shape_of(1, 1, 2, 2, 2, 2, 0);
  for (const bool relu : {false, true}) {
    const auto in = this->upload(x), y = this->template array<T>(1);
    ASSERT_TRUE(this->kernels_
                    ->max_pool(*this->stream_, kTypeOf<T>,
                               {.x = in.data(), .y = y.data(), .places = nullptr, .shape = s, .relu = relu})
                    .ok());
    EXPECT_TRUE(std::isnan(static_cast<float>(this->download(y)[0])));
  }
}

TYPED_TEST(WindowsTest, MatricesAreTransposed) {
  using T = TypeParam;
  struct Case {
    std::uint32_t matrices, rows, columns;
  };
  this->in_both_orders([&] {
    for (const Case& c : {Case{1, 1, 1}, Case{3, 5, 7}, Case{2, 33, 31}, Case{1, 64, 100}, Case{4, 32, 32}}) {
      const std::size_t n = std::size_t{c.matrices} * c.rows * c.columns;
      const auto x = random_values<T>(this->rng_, n);
      Doubles expected(n);
      for (std::size_t m = 0; m < c.matrices; ++m) {
        for (std::size_t r = 0; r < c.rows; ++r) {
          for (std::size_t k = 0; k < c.columns; ++k)
            expected[(m * c.columns + k) * c.rows + r] =
                static_cast<float>(x[(m * c.rows + r) * c.columns + k]);
        }
      }
      const auto from = this->upload(x), to = this->template array<T>(n);
      ASSERT_TRUE(
          this->kernels_
              ->transpose(*this->stream_, kTypeOf<T>,
                          {.from = from.data(), .to = to.data(), .rows = c.rows, .columns = c.columns},
                          c.matrices)
              .ok());
      EXPECT_EQ(doubles(this->download(to)), expected);
    }
  });
}

}  // namespace
}  // namespace paceline::cuda
