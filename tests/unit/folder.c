#define _GNU_SOURCE /* mkdtemp */
#include "tests/unit/folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char pattern[] = "/tmp/deepc-test-XXXXXX";
static char root[sizeof pattern];

bool folder_make(void)
{
    memcpy(root, pattern, sizeof root);
    return mkdtemp(root) != NULL;
}

bool folder_remove(void)
{
    char command[60];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command) == 0;
}

const char *folder_root(void)
{
    return root;
}

const char *folder_path(const char *name)
{
    static char text[8][200];
    static int turn;
    char *out = text[turn = (turn + 1) % 8];
    snprintf(out, sizeof text[0], "%s/%s", root, name);
    return out;
}

int folder_entries(const char *name)
{
    int n = 0;
    DIR *dir = opendir(folder_path(name));
    while (dir != NULL && readdir(dir) != NULL)
        n++;
    if (dir != NULL)
        closedir(dir);
    return n - 2;
}

bool folder_put(const char *name, const char *text)
{
    FILE *f = fopen(folder_path(name), "w");
    if (f == NULL)
        return false;
    const bool put = fputs(text, f) >= 0;
    return fclose(f) == 0 && put;
}

bool folder_has(const char *name, const char *text)
{
    char found[100] = "";
    FILE *f = fopen(folder_path(name), "r");
    const bool read = f != NULL && fgets(found, sizeof found, f) != NULL;
    if (f != NULL)
        fclose(f);
    return text == NULL ? f == NULL : read && strcmp(found, text) == 0;
}
