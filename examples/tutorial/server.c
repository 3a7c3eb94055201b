/*
 * Answers HTTP requests with an image of 28 x 28 bytes each, by the function that export.lua wrote (docs/tutorial.md):
 * one after the other, on this machine alone.
 *
 *     server clothes.dcfn 8080 &
 *     curl --data-binary @boot.raw localhost:8080
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <deepc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { IMAGE = 28 * 28, MOST = 8192 };

static const char *const names[10] = {"T-shirt", "trousers", "pullover", "dress", "coat",
                                      "sandal",  "shirt",    "sneaker",  "bag",   "ankle boot"};

/* A socket that listens on this machine, or -1. */
static int listen_on(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 16) != 0)
        return -1;
    return fd;
}

/* The body of a request, if it is an image: where it begins in text, or NULL. */
static char *read_image(int client, char *text)
{
    size_t n = 0;
    ssize_t got;
    while ((got = recv(client, text + n, MOST - n, 0)) > 0) {
        text[n += (size_t)got] = '\0';
        char *end = strstr(text, "\r\n\r\n"); /* of the headers, which come first */
        if (end != NULL && strncmp(text, "POST ", 5) != 0)
            return NULL;
        if (end != NULL && n - (size_t)(end + 4 - text) >= IMAGE)
            return n - (size_t)(end + 4 - text) == IMAGE ? end + 4 : NULL;
    }
    return NULL;
}

static void answer(int client, dc_rt *ctx, dc_function *fn)
{
    static char text[MOST + 1];
    char reply[512], *image = read_image(client, text);
    float p[10];
    dc_array x = {DC_U8, 3, {1, 28, 28}, image, IMAGE};
    dc_array y = {.data = p, .bytes = sizeof p};
    int best = 0, length;
    if (image == NULL)
        length =
            snprintf(reply, sizeof reply, "HTTP/1.0 400 Bad Request\r\n\r\n784 bytes, please\n");
    else if (dc_call(fn, &x, 1, &y, 1) != DC_OK)
        length =
            snprintf(reply, sizeof reply, "HTTP/1.0 500 Error\r\n\r\n%.300s\n", dc_errmsg(ctx));
    else {
        for (int i = 1; i < 10; i++)
            best = p[i] > p[best] ? i : best;
        length = snprintf(reply, sizeof reply, "HTTP/1.0 200 OK\r\n\r\n%s %.2f\n", names[best],
                          (double)p[best]);
    }
    send(client, reply, (size_t)length, MSG_NOSIGNAL);
}

int main(int argc, char **argv)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *ctx = NULL;
    dc_function *fn = NULL;
    if (argc != 3 || dc_open(&cfg, &ctx) != DC_OK || dc_load(ctx, argv[1], &fn) != DC_OK) {
        fprintf(stderr, "server: %s\n", argc != 3 ? "server clothes.dcfn PORT" : dc_errmsg(ctx));
        return EXIT_FAILURE;
    }
    int fd = listen_on(atoi(argv[2])), client;
    while (fd >= 0 && (client = accept(fd, NULL, NULL)) >= 0) {
        struct timeval patience = {5, 0};
        setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        answer(client, ctx, fn);
        close(client);
    }
    perror("server");
    return EXIT_FAILURE;
}
