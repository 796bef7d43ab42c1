/* Ranks that do not come, and what the others say of them. */
#ifndef COLLX_TESTS_LATE_H
#define COLLX_TESTS_LATE_H

#include <atomic>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>

using LateBoard = std::atomic<uint32_t>[8];

/* The others say these words.  `run` lets them do so after `stall_ms`, in board[0], upon which the
 * late ones come, and returns what went wrong; the rest of the board, zeroed, is its own.  A rank
 * that gets no CPU for so long is late, too, and may be named: it is tried again with longer
 * times, up to `most_ms`.
 */
inline void expect_said(const std::string &words,
                        const std::function<std::string(int stall_ms, LateBoard &board)> &run,
                        int most_ms = 1000)
{
    void *page =
        mmap(nullptr, sizeof(LateBoard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    std::string text;

    ASSERT_NE(page, MAP_FAILED);
    auto &board = *static_cast<LateBoard *>(page);
    for (int stall_ms = 250; stall_ms <= most_ms && text.find(words) == std::string::npos;
         stall_ms *= 2) {
        for (auto &word : board)
            word = 0;
        testing::internal::CaptureStderr();
        std::string wrong = run(stall_ms, board);
        text = testing::internal::GetCapturedStderr();
        EXPECT_EQ(wrong, "");
    }
    munmap(page, sizeof(LateBoard));
    EXPECT_NE(text.find(words), std::string::npos) << text;
}

#endif
